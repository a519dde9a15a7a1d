#include "tests/nccl/device_ranks.h"

#include <thread>

#include "runtime/comm/nccl_group.h"
#include "runtime/comm/rendezvous_server.h"

namespace reckon {

std::vector<std::exception_ptr> run_on_devices(int ranks, const CommunicatorOptions& options,
                                               const std::function<void(Communicator& world)>& body) {
  RendezvousServer server("127.0.0.1", 0, ranks, options.timeout);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        const auto rendezvous = std::make_shared<Rendezvous>("127.0.0.1", server.port(), rank, ranks, options.timeout);
        run_nccl_rank(rank, ranks, rank, rendezvous, options, body);
      } catch (...) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

std::string text_of(const std::exception_ptr& error) {
  if (!error) return {};
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  }
}

}  // namespace reckon
