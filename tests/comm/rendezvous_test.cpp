// Ranks as real processes that meet over TCP on this host. A wrong address, a missing, doubled or dying rank must end
// every rank in bounded time with the cause in its message.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "runtime/comm/rendezvous.h"
#include "runtime/comm/rendezvous_server.h"
#include "runtime/comm/tcp_socket.h"
#include "runtime/comm/wire.h"

namespace reckon {
namespace {

constexpr Seconds kTimeout{2.0};
constexpr double kBound = 2.0 + 15.0;  // the timeout, and a busy machine

/// What a process wrote before it ended, and how long it took.
struct Outcome {
  std::string text;
  double seconds = 0;
};

/// Runs `body` in one forked process a rank; each leaves its text.
template <class Body>
std::vector<Outcome> in_processes(int count, Body body) {
  std::vector<pid_t> children;
  std::vector<std::string> files;
  const auto start = std::chrono::steady_clock::now();
  for (int index = 0; index < count; ++index) {
    files.push_back(testing::TempDir() + "/rendezvous-" + std::to_string(getpid()) + "-" + std::to_string(index));
    const pid_t child = fork();
    if (child == 0) {
      std::string text;
      try {
        text = body(index);
      } catch (const std::exception& error) {
        text = error.what();
      }
      std::ofstream(files.back()) << text;
      _exit(0);
    }
    children.push_back(child);
  }
  std::vector<Outcome> outcomes;
  for (int index = 0; index < count; ++index) {
    waitpid(children[static_cast<std::size_t>(index)], nullptr, 0);
    std::ifstream file(files[static_cast<std::size_t>(index)]);
    std::stringstream text;
    text << file.rdbuf();
    outcomes.push_back({text.str(), std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()});
    unlink(files[static_cast<std::size_t>(index)].c_str());
  }
  return outcomes;
}

/// A port that was free a moment ago.
int free_port() {
  int port = 0;
  const Descriptor listener = listen_on("127.0.0.1", port);
  return port;
}

void expect_in(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "missing: " << part << "\nin: " << text;
}

/// Waits for the run's failure, and returns its text.
std::string failure_of(const Rendezvous& rendezvous) {
  for (int look = 0; look < 1000 && !rendezvous.failed(); ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  try {
    rendezvous.check();
  } catch (const RunError& error) {
    return error.what();
  }
  return "nothing failed";
}

struct Rank {
  std::unique_ptr<RendezvousServer> server;
  std::unique_ptr<Rendezvous> rendezvous;
};

Rank meet(int port, int rank, int ranks) {
  Rank result;
  if (rank == 0) result.server = std::make_unique<RendezvousServer>("127.0.0.1", port, ranks, kTimeout);
  result.rendezvous = std::make_unique<Rendezvous>("127.0.0.1", port, rank, ranks, kTimeout);
  return result;
}

TEST(Rendezvous, GathersFromEveryProcessInRankOrder) {
  const int port = free_port();
  const auto outcomes = in_processes(4, [&](int rank) {
    const Rank own = meet(port, rank, 4);
    std::string all;
    for (const std::string key : {"first", "second"})
      for (const std::string& part : own.rendezvous->gather(key, "world", rank, key + std::to_string(rank), key))
        all += part + " ";
    return all;
  });
  for (const Outcome& outcome : outcomes)
    EXPECT_EQ(outcome.text, "first0 first1 first2 first3 second0 second1 second2 second3 ");
}

TEST(Rendezvous, ARankWhereNobodyListensSaysWhereItLooked) {
  const int port = free_port();
  const auto outcomes = in_processes(1, [&](int) {
    Rendezvous("127.0.0.1", port, 1, 2, kTimeout);
    return std::string("connected");
  });
  expect_in(outcomes[0].text, "rank 1 cannot reach rank 0 at 127.0.0.1:" + std::to_string(port) + " within 2 s");
  expect_in(outcomes[0].text, "refused");
  EXPECT_LT(outcomes[0].seconds, kBound);
}

TEST(Rendezvous, AnAddressThatNoHostHasIsNamed) {
  // The name is reserved never to exist (RFC 2606); the address is reserved for documentation (RFC 5737).
  EXPECT_THROW(
      {
        try {
          RendezvousServer("192.0.2.1", 0, 2, kTimeout);
        } catch (const RunError& error) {
          expect_in(error.what(), "has not the address 192.0.2.1");
          throw;
        }
      },
      RunError);
  EXPECT_THROW(
      {
        try {
          Rendezvous("no-such-host.invalid", 1, 1, 2, kTimeout);
        } catch (const RunError& error) {
          expect_in(error.what(), "no-such-host.invalid");
          throw;
        }
      },
      RunError);
}

TEST(Rendezvous, ATakenPortIsNamed) {
  int port = 0;
  const Descriptor other = listen_on("127.0.0.1", port);
  try {
    RendezvousServer("127.0.0.1", port, 2, kTimeout);
    FAIL() << "two servers on a port";
  } catch (const RunError& error) {
    expect_in(error.what(), "is taken by another program; choose another MASTER_PORT");
  }
}

TEST(Rendezvous, AMissingRankIsNamedToAllOthers) {
  const int port = free_port();
  const auto outcomes = in_processes(2, [&](int index) {
    const Rank own = meet(port, index == 0 ? 0 : 2, 3);
    return failure_of(*own.rendezvous);
  });
  for (const Outcome& outcome : outcomes) {
    expect_in(outcome.text, "rank 1 of 3 has not connected to rank 0 at 127.0.0.1:");
    EXPECT_LT(outcome.seconds, kBound);
  }
}

TEST(Rendezvous, ARankThatDoesNotGatherIsNamed) {
  const int port = free_port();
  const auto outcomes = in_processes(3, [&](int rank) {
    const Rank own = meet(port, rank, 3);
    if (rank == 1) return failure_of(*own.rendezvous);
    own.rendezvous->gather("key", "world", rank, "", "split of group world into tensor");
    return std::string("gathered");
  });
  for (const Outcome& outcome : outcomes)
    expect_in(outcome.text, "split of group world into tensor: no answer within 2 s; rank 1 did not come");
}

TEST(Rendezvous, TwoProcessesOfOneRankAreToldApart) {
  const int port = free_port();
  const auto outcomes = in_processes(3, [&](int index) {
    const Rank own = meet(port, index == 2 ? 1 : index, 3);
    return failure_of(*own.rendezvous);
  });
  expect_in(outcomes[0].text, "two processes call themselves rank 1");
}

TEST(Rendezvous, AnotherNumberOfRanksIsNamed) {
  const int port = free_port();
  const auto outcomes = in_processes(2, [&](int rank) {
    const Rank own = meet(port, rank, rank == 0 ? 2 : 4);
    return failure_of(*own.rendezvous);
  });
  for (const Outcome& outcome : outcomes)
    expect_in(outcome.text, "rank 0 waits for 2 ranks, but a process calls itself rank 1 of 4");
}

TEST(Rendezvous, ADyingRankEndsTheOthers) {
  const int port = free_port();
  const auto outcomes = in_processes(3, [&](int rank) {
    const Rank own = meet(port, rank, 3);
    own.rendezvous->gather("key", "world", rank, "", "start");
    if (rank == 1) _exit(3);
    return failure_of(*own.rendezvous);
  });
  expect_in(outcomes[0].text, "rank 1 has died");
  expect_in(outcomes[2].text, "rank 1 has died");
}

TEST(Rendezvous, TheDeathOfRankZeroEndsTheOthers) {
  const int port = free_port();
  const auto outcomes = in_processes(2, [&](int rank) {
    const Rank own = meet(port, rank, 2);
    own.rendezvous->gather("key", "world", rank, "", "start");
    if (rank == 0) _exit(3);
    return failure_of(*own.rendezvous);
  });
  expect_in(outcomes[1].text, "rank 0 has died");
}

TEST(Rendezvous, TheFirstFailureReachesAll) {
  const int port = free_port();
  const auto outcomes = in_processes(3, [&](int rank) {
    const Rank own = meet(port, rank, 3);
    own.rendezvous->gather("met", "world", rank, "", "start");  // else rank 0 may be gone before rank 1 has come
    if (rank == 2) own.rendezvous->fail("rank 2 failed: out of luck");
    return failure_of(*own.rendezvous);
  });
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.text, "rank 2 failed: out of luck");
}

TEST(Rendezvous, CallsThatDifferEndTheRun) {
  const int port = free_port();
  const auto outcomes = in_processes(2, [&](int rank) {
    const Rank own = meet(port, rank, 2);
    const ConstBufferView send{nullptr, 4 + rank, ElementType::fp32};
    const BufferView receive{nullptr, 4 + rank, ElementType::fp32};
    own.rendezvous->announce({"world", rank, 1, {OperationKind::all_reduce, Reduction::sum, send, receive, 0, {}, {}}});
    return failure_of(*own.rendezvous);
  });
  for (const Outcome& outcome : outcomes) {
    expect_in(outcome.text, "call 1 of group world differs");
    expect_in(outcome.text, "rank 1 called all_reduce (sum) of 5 fp32 elements");
  }
}

/// Something else on the network finds the port and sends what is no frame.
TEST(Rendezvous, StrangersDoNoHarm) {
  RendezvousServer server("127.0.0.1", 0, 2, kTimeout);
  FrameSocket stranger = connect_to("127.0.0.1", server.port(), Deadline::clock::now() + std::chrono::seconds(2));
  stranger.send(0x20544547, "/ HTTP/1.1");
  FrameSocket early = connect_to("127.0.0.1", server.port(), Deadline::clock::now() + std::chrono::seconds(2));
  early.send(2, "");  // a gather before any hello
  Rendezvous first("127.0.0.1", server.port(), 0, 2, kTimeout), second("127.0.0.1", server.port(), 1, 2, kTimeout);
  std::thread other([&] { second.gather("key", "world", 1, "b", "start"); });
  EXPECT_EQ(first.gather("key", "world", 0, "a", "start"), (std::vector<std::string>{"a", "b"}));
  other.join();
  EXPECT_FALSE(first.failed());
}

}  // namespace
}  // namespace reckon
