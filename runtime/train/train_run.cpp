#include "runtime/train/train_run.h"

#include <ctime>
#include <vector>

#include "runtime/train/check_gradients.h"
#include "runtime/train/checkpointing.h"
#include "runtime/train/clock_offset.h"
#include "runtime/train/exchange_traces.h"
#include "runtime/train/input/executable.h"
#include "runtime/train/rank_report.h"
#include "runtime/train/rank_scope.h"
#include "runtime/train/rank_trainer.h"

namespace reckon {
namespace {

constexpr std::size_t kMostTimed = 500;  // last steps that medians are taken of: memory stays flat however long it runs

double thread_cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// A run that went on from a checkpoint saves its end in any case: an older state would pass for its result.
bool saves_after(const Plan& plan, bool resumed, std::int64_t step) {
  const std::int64_t every = plan.train.checkpoint_every;
  if (step == plan.train.steps) return every > 0 || resumed;
  return every > 0 && step % every == 0;
}

/// With the weights that the run has come to. Its tensors are no part of the run's memory.
void run_gradient_check(const Plan& plan, Communicator& world, const TokenStream& tokens, RankTrainer& trainer,
                        std::int64_t step, const TrainObserver& observer) {
  MemoryAccount unlimited;
  const AccountScope scope(unlimited);
  const GradientCheck check = check_gradients(plan, world, tokens, trainer.parameters(), step);
  if (world.rank() == 0) observer.on_gradient_check(check);
}

}  // namespace

TrainResult train(const Plan& plan, Communicator& world, const TokenStream& tokens, const TrainObserver& observer,
                  const TrainFolders& folders, TrainDevice device) {
  MemoryAccount account(allocation_limit(plan), world.rank());
  const RankScope scope(account, device);
  const RehearsedFault fault = RehearsedFault::from_environment(world.rank());
  fault.reach(RunPhase::start, 0);
  RankTrainer trainer(plan, world, tokens, fault, device);
  std::int64_t start = 0;
  if (!folders.resume.empty()) start = load_checkpoint(plan, world, trainer, folders.resume);
  else if (!plan.train.initial_weights.empty()) load_initial_weights(plan, world, trainer);
  if (!observer.times_ops) trainer.timer().without_borders();
  const std::int64_t offset = clock_offset(world);
  std::vector<StepTimes> times;
  TimedSteps timed;
  const std::int64_t first_timed = std::min(start + plan.train.warmup, std::max(start, plan.train.steps - 1));
  std::int64_t done = start, counted_from = start;
  bool stop = false;
  while (done < plan.train.steps && !stop) {
    if (done == start || done == first_timed) {  // traffic is that of the timed steps
      for (GroupCalls* group : trainer.groups().all()) group->communicator().reset_traffic();
      counted_from = done;
    }
    world.barrier().wait();  // ranks start the step together, so that it measures the step alone
    const double cpu_start = thread_cpu_seconds();
    const StepResult result = trainer.step(done++);
    const double cpu = thread_cpu_seconds() - cpu_start;
    double shared[] = {result.times.seconds, observer.stop_requested() ? 1.0 : 0.0};
    world.all_reduce(view(shared), Reduction::maximum).wait();
    stop = shared[1] > 0;
    if (done > first_timed || stop) {
      times.push_back(result.times);
      timed.seconds.push_back(shared[0]);
      timed.useful_tokens.push_back(static_cast<double>(result.tokens));
    }
    if (times.size() > kMostTimed) {
      times.erase(times.begin());
      timed.seconds.erase(timed.seconds.begin());
      timed.useful_tokens.erase(timed.useful_tokens.begin());
    }
    if (world.rank() == 0)
      observer.on_step({done, result.loss, result.gradient_norm, result.learning_rate, shared[0], cpu,
                        static_cast<double>(result.tokens) / shared[0], account.peak().value});
    if (folders.checkpoints.empty() || !(stop || saves_after(plan, !folders.resume.empty(), done))) continue;
    if (world.rank() == 0) observer.before_checkpoint();
    save_checkpoint(plan, world, trainer, folders.checkpoints, done);
  }
  RankTrace trace = trainer.timer().trace();
  trace.rank = world.rank();
  trace.stage = trainer.groups().coordinates.pipeline;
  const std::vector<RankTrace> traces = exchange_traces(world, trace, offset);
  if (world.rank() == 0) observer.on_trace(traces);
  if (observer.on_gradient_check) run_gradient_check(plan, world, tokens, trainer, done, observer);
  const RankReport report = rank_report(trainer, world.rank(), account, times, done - counted_from, device);
  return {measured_profile(plan, exchange_reports(world, report), timed), done};
}

}  // namespace reckon
