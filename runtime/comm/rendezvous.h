// A rank's side of the rendezvous (rendezvous_server.h): a thread that carries announcements to rank 0 and brings
// failures back. For backends whose ranks cannot see each other otherwise; nothing here touches a device.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "plan/errors.h"
#include "plan/units.h"
#include "runtime/comm/call_ledger.h"
#include "runtime/comm/tcp_socket.h"

namespace reckon {

class Rendezvous {
 public:
  /// Connects to rank 0's server. Throws RunError with address and reason when that fails for longer than `timeout`.
  Rendezvous(const std::string& address, int port, int rank, int ranks, Seconds timeout);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  /// Every member's `bytes`, in group order. Collective over the group `group` (a key that is open); `key` must be new.
  /// `purpose` begins the message when a member does not come in time.
  std::vector<std::string> gather(const std::string& key, const std::string& group, int member, std::string bytes,
                                  const std::string& purpose);

  void open_group(const std::string& key, const std::string& name, const std::vector<int>& world_ranks);

  /// Tells rank 0 of a call, soon; a call that differs from the other ranks' fails the run.
  void announce(const AnnouncedCall& call);
  /// The call has not ended in `waited`: fails the run with a message that says who is missing. Returns when the
  /// failure is there.
  void overdue(const AnnouncedCall& call, Seconds waited);

  /// Fails the run for every rank. The first failure counts.
  void fail(const std::string& text, ExitCode code = ExitCode::run_failed);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  /// Throws the failure as RunError, if there is one.
  void check() const;

 private:
  struct Failure {
    std::string text;
    ExitCode code = ExitCode::run_failed;
  };

  void run();
  void send_all();
  void handle(const Frame& frame);
  void queue(int kind, std::string bytes, bool at_once);
  void record(const std::string& text, ExitCode code);
  void await_failure(const std::string& otherwise);

  FrameSocket socket_;
  Seconds timeout_;
  int rank_;
  Descriptor bell_;  // wakes the thread
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Frame> outbox_;
  std::map<std::string, std::vector<std::string>> gathered_;
  Failure failure_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace reckon
