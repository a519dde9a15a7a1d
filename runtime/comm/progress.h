// Carries the calls of one rank forward: by the caller while it waits, by a background thread while it computes.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/comm/board.h"
#include "runtime/comm/handle.h"

namespace reckon {

class Progress;

/// One call in flight. announce, advance and the texts are used by Progress only.
class ActiveCall : public PendingOperation, public std::enable_shared_from_this<ActiveCall> {
 public:
  explicit ActiveCall(Progress& progress) : progress_(progress), issued_(monotonic_nanoseconds()) {}

  void wait() override;
  bool done() override;
  OperationTime time() const override;

  /// Makes the call visible to its peers; false while no slot is free.
  virtual bool announce() = 0;
  /// Does what can be done without waiting; true when the call is complete.
  virtual bool advance() = 0;
  /// True if peers depend on this rank's work after the announcement.
  virtual bool needs_thread() const = 0;
  /// Why the call cannot complete (a peer has left or its process has ended), else empty.
  virtual std::string broken() = 0;
  /// The message of a timeout.
  virtual std::string overdue(double seconds) = 0;

 protected:
  std::int64_t issued() const { return issued_; }
  /// The latest moment (monotonic nanoseconds) at which a peer made its side of the call.
  void met_at(std::int64_t moment) { met_ = std::max(met_, moment); }

 private:
  friend class Progress;

  Progress& progress_;
  std::atomic<bool> complete_{false};
  bool counted_ = false;  // in Doorbell::thread_calls
  std::int64_t issued_, met_ = 0, completed_ = 0;
  std::int64_t wait_began_ = 0, wait_ended_ = 0;
};

class Progress {
 public:
  Progress(HostBoard board, int rank, Seconds timeout)
      : board_(std::move(board)), bell_(board_.doorbell(rank)), timeout_(timeout) {}
  ~Progress();

  HostBoard& board() { return board_; }

  /// Looks at calls this often while waiting, for backends whose peers cannot ring.
  void poll_every(Seconds interval) { sleep_seconds_ = interval.value; }

  /// Ends the thread and forgets calls that are still in flight. For the end of a rank.
  void stop();

  void add(std::shared_ptr<ActiveCall> call);
  void wait_for(ActiveCall& call);
  bool poll(ActiveCall& call);

 private:
  void advance_all();
  void retire(ActiveCall& call);
  void sleep_until_rung(std::uint32_t seen, std::int64_t spin_until);
  void check_overdue(ActiveCall& call);
  void run_thread();

  HostBoard board_;
  Doorbell& bell_;
  Seconds timeout_;
  std::atomic<double> sleep_seconds_{0.1};
  std::int64_t crowded_until_ = 0, crowded_for_ = 0;  // nanoseconds; the caller's: its core is wanted by others
  std::mutex engine_;                                 // held while calls are advanced
  std::vector<std::shared_ptr<ActiveCall>> active_;
  std::mutex entrance_;
  std::vector<std::shared_ptr<ActiveCall>> entering_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> thread_rests_{false};  // it has to be rung to see a new call
  std::thread thread_;
};

}  // namespace reckon
