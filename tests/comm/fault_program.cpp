// A run in which one rank misbehaves; the fault tests start it and look at its messages, exit code and duration.
//   comm_fault BACKEND RANKS TIMEOUT_SECONDS FAULT [MARK]
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "plan/errors.h"
#include "runtime/comm/make_communicator.h"

namespace reckon {
namespace {

/// Rank 1 is the one at fault. All ranks have made two good calls before.
using Fault = void (*)(Communicator& world, bool at_fault, std::vector<float>& buffer);

const std::map<std::string, Fault> kFaults{
    {"size",
     [](Communicator& world, bool at_fault, std::vector<float>& buffer) {
       buffer.resize(at_fault ? 5 : 4);
       world.all_reduce(view(buffer)).wait();
     }},
    {"large-size",
     [](Communicator& world, bool at_fault, std::vector<float>& buffer) {
       buffer.resize(at_fault ? 200000 : 100000);
       world.all_reduce(view(buffer)).wait();
     }},
    {"kind",
     [](Communicator& world, bool at_fault, std::vector<float>& buffer) {
       if (at_fault) world.barrier().wait();
       else world.all_reduce(view(buffer)).wait();
     }},
    {"reduction",
     [](Communicator& world, bool at_fault, std::vector<float>& buffer) {
       world.all_reduce(view(buffer), at_fault ? Reduction::maximum : Reduction::sum).wait();
     }},
    {"root", [](Communicator& world, bool at_fault,
                std::vector<float>& buffer) { world.broadcast(view(buffer), at_fault ? 1 : 0).wait(); }},
    {"message",
     [](Communicator& world, bool at_fault, std::vector<float>& buffer) {
       buffer.resize(at_fault ? 3 : 4);
       if (world.rank() == 0) world.send(view(buffer), 1).wait();
       if (world.rank() == 1) world.receive(view(buffer), 0).wait();
       world.barrier().wait();
     }},
    {"sleep",
     [](Communicator& world, bool at_fault, std::vector<float>& buffer) {
       if (at_fault) sleep(600);
       world.all_reduce(view(buffer)).wait();
     }},
    {"sleep-message",
     [](Communicator& world, bool at_fault, std::vector<float>& buffer) {
       if (at_fault) sleep(600);
       if (world.rank() == 0) world.receive(view(buffer), 1).wait();
       world.barrier().wait();
     }},
    {"throw",
     [](Communicator& world, bool at_fault, std::vector<float>& buffer) {
       if (at_fault) throw std::runtime_error("out of luck");
       world.all_reduce(view(buffer)).wait();
     }},
    {"leave",
     [](Communicator& world, bool at_fault, std::vector<float>& buffer) {
       if (at_fault) return;
       world.all_reduce(view(buffer)).wait();
     }},
    {"exit",
     [](Communicator& world, bool at_fault, std::vector<float>& buffer) {
       if (at_fault) _exit(0);
       world.all_reduce(view(buffer)).wait();
     }},
    {"kill",
     [](Communicator& world, bool at_fault, std::vector<float>& buffer) {
       if (at_fault) kill(getpid(), SIGKILL);
       world.all_reduce(view(buffer)).wait();
     }},
};

/// Something of the caller that a stuck rank may still use: it tells when it is destroyed.
struct Owned {
  Owned() = default;
  ~Owned() { fmt::print(stderr, "the caller's objects are gone\n"); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
};

void run(Communicator& world, const std::string& fault) {
  std::vector<float> buffer(4, 1.0f);
  world.all_reduce(view(buffer)).wait();
  world.barrier().wait();
  kFaults.at(fault)(world, world.rank() == 1, buffer);
}

}  // namespace
}  // namespace reckon

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const std::string backend = argv[1], fault = argv[4];
  try {
    const reckon::Owned owned;
    reckon::run_ranks(backend, std::atoi(argv[2]), {reckon::Seconds(std::atof(argv[3]))},
                      [fault](reckon::Communicator& world) { reckon::run(world, fault); });
  } catch (const reckon::Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return static_cast<int>(error.exit_code());
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 6;
  }
  return 0;
}
