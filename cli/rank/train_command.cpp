#include "cli/rank/train_command.h"

#include <fmt/format.h>

#include <csignal>

#include "cli/find_configs.h"
#include "cli/rank/metrics_file.h"
#include "cli/rank/progress_display.h"
#include "cost_model/model_flops.h"
#include "plan/errors.h"
#include "plan/load_plan.h"
#include "plan/step_documents.h"
#include "report/measured_trace.h"
#include "report/profile_json.h"
#include "report/write_file.h"
#include "report/write_gradient_check.h"
#include "runtime/checkpoint/checkpoint_manifest.h"
#include "runtime/comm/launch_place.h"
#include "runtime/comm/make_communicator.h"
#include "runtime/comm/nccl_communicator.h"
#include "runtime/train/device/device_rank.h"
#include "runtime/train/input/executable.h"
#include "runtime/train/train_run.h"

namespace reckon {
namespace {

volatile std::sig_atomic_t stop_signal = 0;

void remember_signal(int signal) {
  stop_signal = signal;
}

Plan load(const RankOptions& options) {
  Plan plan = load_plan(options.plan, options.overrides, find_configs());
  if (options.steps >= 0) plan.train.steps = options.steps;
  if (auto broken = check_plan(plan); !broken.empty()) throw RuleError(std::move(broken));
  require_executable(plan);
  return plan;
}

TrainFolders folders_of(const RankOptions& options) {
  return {options.out / "checkpoints", options.resume};
}

void add_flops(StepProfile& profile) {
  const Plan& plan = profile.plan;
  const AttentionWork work = planned_attention_work(plan);
  profile.step.model_flops = model_flops(plan, work);
  const auto peak = plan.hardware.device.peak.find(plan.precision.compute);
  if (peak == plan.hardware.device.peak.end()) return;
  const double possible = peak->second.value * profile.step.seconds.value * static_cast<double>(plan.world_size());
  profile.step.mfu = profile.step.model_flops.value / possible;
  profile.step.hfu = (profile.step.model_flops + recomputed_flops(plan, work)).value / possible;
}

/// Ranks over nccl have a GPU each; ranks that are threads share the first one where the plan is for GPUs.
TrainDevice device_of(const RankOptions& options, const Plan& plan) {
  std::string reason;
  if (options.backend == "nccl") return {TrainDevice::Kind::cuda, launch_place().local_rank};
  const bool shares = options.backend == "threads" && !plan.hardware.device.is_cpu && device_training_is_built_in();
  if (shares && nccl_devices(reason) > 0) return {TrainDevice::Kind::cuda, 0};
  return {};
}

/// The metrics of the run that is resumed, up to the checkpoint.
std::string earlier_metrics(const std::filesystem::path& checkpoint) {
  if (checkpoint.empty()) return {};
  return metrics_until(checkpoint.parent_path().parent_path() / "metrics.jsonl", read_manifest(checkpoint).step);
}

void run_as_reporter(const Plan& plan, const RankOptions& options, Communicator& world, const TokenStream& tokens,
                     TrainObserver observer, TrainDevice device) {
  MetricsFile metrics(options.out / "metrics.jsonl", earlier_metrics(options.resume));
  TrainResult result;
  {
    ProgressDisplay progress(plan.train.steps, options.bar);
    observer.on_step = [&](const StepMetrics& step) {
      metrics.write(step);
      progress.show(step);
    };
    observer.on_trace = [&](const std::vector<RankTrace>& traces) {
      write_file(options.out / "trace.json", measured_trace_json(traces));
    };
    observer.before_checkpoint = [&] { metrics.make_durable(); };
    result = train(plan, world, tokens, observer, folders_of(options), device);
  }
  if (result.steps < plan.train.steps)
    throw RunError(fmt::format("the run was interrupted after step {} of {} and its state saved; --resume {} goes on",
                               result.steps, plan.train.steps, options.out.string()));
  add_flops(result.profile);
  write_file(options.out / "measured.json", profile_json(result.profile));
}

}  // namespace

void train_command(const RankOptions& options, const std::function<void()>& before_ranks_start,
                   const std::function<int(std::exception_ptr)>& tell_failure) {
  const Plan plan = load(options);
  if (options.backend == "nccl" && !device_training_is_built_in())
    throw ConfigError(
        "this reckon-rank trains on processors only; `./bootstrap build --preset gpu` builds one for GPUs");
  const TrainDevice device = device_of(options, plan);
  if (!device.is_cpu() && options.check_gradients)
    throw ConfigError("--check-gradients compares on processors; with --backend mpi it checks the same plan");
  const TokenStream tokens(plan);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) std::signal(signal, remember_signal);
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is an error of write(), not a death
  TrainObserver observer;
  observer.times_ops = !options.untimed;
  observer.stop_requested = [] { return stop_signal != 0; };
  if (options.check_gradients)
    observer.on_gradient_check = [&options](const GradientCheck& check) {
      write_file(options.out / "gradients.json", gradient_check_json(check));
    };
  const CommunicatorOptions communication{plan.train.timeout, true, tell_failure};
  before_ranks_start();
  run_ranks(options.backend, static_cast<int>(plan.world_size()), communication, [&](Communicator& world) {
    if (world.rank() == 0) run_as_reporter(plan, options, world, tokens, observer, device);
    else train(plan, world, tokens, observer, folders_of(options), device);
  });
}

}  // namespace reckon
