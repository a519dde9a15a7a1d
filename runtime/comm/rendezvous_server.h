// Rank 0's side of the rendezvous: a thread that introduces the ranks of a run to each other, gathers small values,
// compares announced calls, and passes the first failure to everybody.
#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "plan/errors.h"
#include "plan/units.h"
#include "runtime/comm/call_ledger.h"
#include "runtime/comm/tcp_socket.h"

namespace reckon {

class RendezvousServer {
 public:
  /// Listens from now on; `port` 0 takes a free one. Ranks that have not come within `timeout` end the run. Throws
  /// RunError where it cannot listen there.
  RendezvousServer(const std::string& address, int port, int ranks, Seconds timeout);
  /// Waits a moment for ranks that have not said goodbye.
  ~RendezvousServer();
  RendezvousServer(const RendezvousServer&) = delete;
  RendezvousServer& operator=(const RendezvousServer&) = delete;

  int port() const { return port_; }

 private:
  struct Connection {
    FrameSocket socket;
    std::optional<int> rank;
    bool said_goodbye = false;
  };
  struct Gathering {
    std::vector<std::optional<std::string>> bytes;  // by member
  };

  void run();
  void look(int milliseconds);
  void handle(Connection& connection, const Frame& frame);
  void greet(Connection& connection, const Frame& frame);
  void gather(const Frame& frame);
  std::string who_is_missing(const std::string& key, const std::string& group) const;
  void fail(const std::string& text, ExitCode code);
  void check_presence();
  bool everybody_left() const;

  std::string address_;
  int port_;
  int ranks_;
  Seconds timeout_;
  Deadline presence_deadline_;
  Descriptor listener_;
  std::vector<Connection> connections_;
  std::map<std::string, Gathering> gatherings_;
  CallLedger ledger_;
  std::string failure_;  // as it is sent; empty: none
  bool all_present_ = false;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace reckon
