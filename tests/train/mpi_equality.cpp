// Started by mpirun: the same plan over MPI and over threads must give the same losses and weights to the bit.
// Exit code 0 = equal. Run by ctest as train.ThreadsEqualMpi.
#include <ATen/ATen.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "runtime/comm/make_communicator.h"
#include "tests/train/small_plan.h"

namespace reckon {
namespace {

struct Outcome {
  std::vector<double> losses, norms;
  at::Tensor weights;  // of rank 0
};

Outcome train_over(const char* backend, const Plan& plan) {
  Outcome outcome;
  const TokenStream tokens(plan);
  run_ranks(backend, static_cast<int>(plan.world_size()), {}, [&](Communicator& world) {
    MemoryAccount& account = *new MemoryAccount(Bytes(0), world.rank());  // the copy below outlives the rank
    const RankScope scope(account);
    RankTrainer trainer(plan, world, tokens);
    for (int step = 0; step < 5; ++step) {
      const StepResult result = trainer.step(step);
      if (world.rank() != 0) continue;
      outcome.losses.push_back(result.loss);
      outcome.norms.push_back(result.gradient_norm);
    }
    if (world.rank() == 0) outcome.weights = trainer.parameters().weights().clone();
  });
  return outcome;
}

bool equal(const Plan& plan, bool compares) {
  const Outcome mpi = train_over("mpi", plan);
  if (!compares) return true;
  const Outcome threads = train_over("threads", plan);
  return mpi.losses == threads.losses && mpi.norms == threads.norms && at::equal(mpi.weights, threads.weights);
}

}  // namespace
}  // namespace reckon

int main() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  reckon::Plan plan = reckon::testing::small_plan();
  plan.parallel.data = 2;
  plan.parallel.zero = 1;
  plan.gradients.bucket = reckon::Bytes(2000);
  const bool same = reckon::equal(plan, rank != nullptr && std::atoi(rank) == 0);
  if (!same) std::fprintf(stderr, "threads and MPI differ\n");
  return same ? 0 : 1;
}
