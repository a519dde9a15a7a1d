#include "cli/rank/train_command.h"

#include <fmt/format.h>

#include <csignal>
#include <cstring>
#include <fstream>

#include "cli/find_configs.h"
#include "cli/rank/progress_display.h"
#include "cost_model/model_flops.h"
#include "plan/errors.h"
#include "plan/load_plan.h"
#include "report/measured_trace.h"
#include "report/profile_json.h"
#include "report/write_file.h"
#include "runtime/comm/make_communicator.h"
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
  if (!options.resume.empty()) throw ConfigError("--resume: checkpoints cannot be read yet");
  return plan;
}

/// metrics.jsonl, flushed line by line so that it can be followed.
class MetricsFile {
 public:
  explicit MetricsFile(const std::filesystem::path& file) : file_(file), out_(file) { check(); }
  void write(const StepMetrics& m) {
    out_
        << fmt::format(
               R"({{"step": {}, "loss": {:.9g}, "grad_norm": {:.9g}, "learning_rate": {:.9g}, "seconds": {:.6g}, "cpu_seconds": {:.6g}, )"
               R"("tokens_per_second": {:.6g}, "memory_peak_bytes": {}}})",
               m.step, m.loss, m.gradient_norm, m.learning_rate, m.seconds, m.cpu_seconds, m.tokens_per_second,
               m.memory_peak_bytes)
        << std::endl;
    check();
  }

 private:
  void check() const {
    if (!out_) throw RunError(fmt::format("{} cannot be written: {}", file_.string(), std::strerror(errno)));
  }

  std::filesystem::path file_;
  std::ofstream out_;
};

void add_flops(StepProfile& profile) {
  const Plan& plan = profile.plan;
  const AttentionWork work = single_document_work(plan);
  profile.step.model_flops = model_flops(plan, work);
  const auto peak = plan.hardware.device.peak.find(plan.precision.compute);
  if (peak == plan.hardware.device.peak.end()) return;
  const double possible = peak->second.value * profile.step.seconds.value * static_cast<double>(plan.world_size());
  profile.step.mfu = profile.step.model_flops.value / possible;
  profile.step.hfu = (profile.step.model_flops + recomputed_flops(plan, work)).value / possible;
}

void run_as_reporter(const Plan& plan, const RankOptions& options, Communicator& world, const TokenStream& tokens,
                     TrainObserver observer) {
  MetricsFile metrics(options.out / "metrics.jsonl");
  StepProfile profile;
  {
    ProgressDisplay progress(plan.train.steps, options.bar);
    observer.on_step = [&](const StepMetrics& step) {
      metrics.write(step);
      progress.show(step);
    };
    observer.on_trace = [&](const std::vector<RankTrace>& traces) {
      write_file(options.out / "trace.json", measured_trace_json(traces));
    };
    profile = train(plan, world, tokens, observer);
  }
  add_flops(profile);
  write_file(options.out / "measured.json", profile_json(profile));
}

}  // namespace

void train_command(const RankOptions& options, const std::function<void()>& before_ranks_start,
                   const std::function<int(std::exception_ptr)>& tell_failure) {
  const Plan plan = load(options);
  const TokenStream tokens(plan);
  std::signal(SIGTERM, remember_signal);
  std::signal(SIGINT, remember_signal);
  TrainObserver observer;
  observer.times_ops = !options.untimed;
  observer.stop_requested = [] { return stop_signal != 0; };
  const CommunicatorOptions communication{plan.train.timeout, true, tell_failure};
  before_ranks_start();
  run_ranks(options.backend, static_cast<int>(plan.world_size()), communication, [&](Communicator& world) {
    if (world.rank() == 0) run_as_reporter(plan, options, world, tokens, observer);
    else train(plan, world, tokens, observer);
  });
}

}  // namespace reckon
