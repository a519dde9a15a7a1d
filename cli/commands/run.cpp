#include "cli/commands/run.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>

#include "cli/calibration.h"
#include "cli/folder_lock.h"
#include "cli/hardware_notes.h"
#include "cli/load_checked_plan.h"
#include "cli/page_parts.h"
#include "cli/rank_end.h"
#include "cli/rank_program.h"
#include "cli/resume.h"
#include "cli/trace_file.h"
#include "cost_model/estimate_op_times.h"
#include "cost_model/predict.h"
#include "report/compare_profiles.h"
#include "report/profile_json.h"
#include "report/write_console.h"
#include "report/write_file.h"
#include "report/write_gradient_check.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/hugging_face_weights.h"
#include "runtime/train/input/executable.h"
#include "runtime/train/input/token_stream.h"
#include "sim/simulate_step.h"

namespace reckon {

namespace fs = std::filesystem;

namespace {

constexpr const char* kResults[] = {"measured.json",  "comparison.json",      "simulated.json",
                                    "predicted.json", "trace.json",           "report.html",
                                    "error.json",     "simulated_trace.json", "gradients.json"};

std::vector<std::string> overrides_of(const RunOptions& options) {
  std::vector<std::string> overrides = options.overrides;
  if (options.steps) overrides.push_back(fmt::format("train.steps={}", *options.steps));
  return overrides;
}

fs::path folder_of(const RunOptions& options, const ResumePoint& from) {
  if (!options.out.empty()) return options.out;
  if (!from.run.empty()) return from.run;
  const auto now = fmt::localtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()));
  return fs::path("runs") / fmt::format("{}-{:%Y%m%d-%H%M%S}", fs::path(options.plan).stem().string(), now);
}

/// Makes the folder and makes sure that it can be written to, before anything is computed.
void prepare_folder(const fs::path& folder) {
  const auto fail = [&](const std::string& reason) {
    throw ConfigError(fmt::format("the output folder {} cannot be written to: {}", folder.string(), reason));
  };
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail(error.message());
  if (::access(folder.c_str(), W_OK | X_OK) != 0) fail(std::strerror(errno));
}

Backend backend_of(const RunOptions& options, const Plan& plan) {
  return options.backend.value_or(plan.hardware.device.is_cpu ? Backend::mpi : Backend::nccl);
}

const char* name_of(Backend backend) {
  return backend == Backend::threads ? "threads" : backend == Backend::mpi ? "mpi" : "nccl";
}

std::vector<std::string> rank_command(const RunOptions& options, const Plan& plan, const fs::path& folder,
                                      const ResumePoint& from) {
  std::vector<std::string> command = {
      require_rank_program("training"),  "train", "--plan", folder / "plan.yaml", "--out", folder, "--backend",
      name_of(backend_of(options, plan))};
  if (!from.checkpoint.empty()) command.insert(command.end(), {"--resume", from.checkpoint});
  if (options.check_gradients) command.emplace_back("--check-gradients");
  if (::isatty(STDERR_FILENO)) command.emplace_back("--bar");  // a launcher gives ranks a pipe, so they cannot see it
  return command;
}

void warn_before_run(const RunOptions& options, const StepProfile& predicted, const Output& output) {
  for (const std::string& warning : predicted.warnings) output.warning(warning);
  const Verdict& verdict = predicted.verdict;
  if (!verdict.fits) {
    output.warning(
        fmt::format("this plan is predicted not to fit (needs {} of {} bytes; {} crosses the limit); the run "
                    "enforces the limit and will stop there",
                    verdict.need.value, verdict.limit.value, verdict.breaks.value_or("memory")));
  }
  if (predicted.plan.nodes > 1 && !enclosing_launcher())
    output.warning(
        fmt::format("the prediction is for {} nodes, the run puts all ranks on this machine; start it with "
                    "mpirun on a list of hosts to use several",
                    predicted.plan.nodes));
  if (!predicted.plan.hardware.device.is_cpu && backend_of(options, predicted.plan) != Backend::nccl)
    output.warning(fmt::format("the prediction is for {}, the run uses this machine's processors{}",
                               predicted.plan.hardware.device.name,
                               backend_of(options, predicted.plan) == Backend::threads
                                   ? ", or its first GPU for all ranks where the build and the machine have one"
                                   : ""));
}

/// What is predicted before the ranks start, and the page it will be shown on.
struct Predictions {
  StepProfile predicted, simulated;
  Report report;
};

/// No result of an earlier run in this folder can be taken for one of this run.
Predictions write_predictions(const Plan& plan, const fs::path& folder, const ResumePoint& from) {
  std::error_code error;
  for (const char* name : kResults) fs::remove(folder / name, error);
  if (from.checkpoint.empty()) fs::remove(folder / "metrics.jsonl", error);
  const StepProfile predicted = predict(plan);
  write_file(folder / "predicted.json", profile_json(predicted));
  const OpTimes times = estimate_op_times(plan);
  const Simulation simulation = simulate_step(predicted, times);
  write_file(folder / "simulated.json", profile_json(simulation.profile));
  write_trace_file(simulation, folder / "simulated_trace.json");
  return {predicted, simulation.profile, plan_report(predicted, simulation, times)};
}

void report_results(Predictions predictions, const fs::path& folder, const ConfigPaths& paths, const Output& output) {
  const StepProfile measured = read_profile(folder / "measured.json", paths);
  const ProfileComparison comparison = compare_profiles(predictions.predicted, predictions.simulated, measured);
  write_file(folder / "comparison.json", comparison_json(comparison));
  add_comparison(predictions.report, {predictions.simulated, measured}, comparison);
  predictions.report.metrics = read_metrics(folder / "metrics.jsonl");
  write_file(folder / "report.html", report_page(predictions.report));
  std::string text = fmt::format("\n{}\n{}\n", plan_summary(measured), comparison_text(comparison, output.style()));
  if (fs::exists(folder / "gradients.json"))
    text += gradient_check_text(read_gradient_check(folder / "gradients.json"), output.style()) + "\n";
  text += fmt::format("report: {}\n", (folder / "report.html").string());
  output.result(output.json() ? profile_json(measured) : text);
}

void check_launcher(const LauncherPlace& place, const Plan& plan, const RunOptions& options) {
  if (options.backend == Backend::threads)
    throw ConfigError(fmt::format("under {} every process is one rank, so --backend threads cannot be; leave it out",
                                  place.launcher));
  if (options.out.empty())
    throw ConfigError(
        fmt::format("under {} all processes need the same folder; name it with --out DIR", place.launcher));
  if (place.ranks == plan.world_size()) return;
  throw ConfigError(fmt::format("{} started {} processes, but the plan's degrees multiply to {} ranks; start that many",
                                place.launcher, place.ranks, plan.world_size()));
}

/// Refuses what a rank would refuse, before the folder is touched.
void check_run(const RunOptions& options, const Plan& plan) {
  if (backend_of(options, plan) == Backend::nccl) require_gpu_training(RECKON_BACKENDS);
  if (options.check_gradients && plan.parallel.zero == 3)
    throw ConfigError(
        "--check-gradients compares on whole weights, which ZeRO-3 does not hold; check with parallel.zero=1, "
        "activations are stored alike");
  require_executable(plan);
  const TokenStream readable(plan);
  if (options.resume.empty() && !plan.train.initial_weights.empty())
    HuggingFaceWeights(plan.train.initial_weights).require_model(plan.model);
}

/// Throws what the end means, after telling what of the run is safe.
[[noreturn]] void end_failed_run(const ProcessEnd& end, const fs::path& folder, const Output& output) {
  const fs::path checkpoints = folder / "checkpoints";
  remove_unfinished(checkpoints);
  if (!complete_checkpoints(checkpoints).empty())
    output.note(fmt::format("{0} is complete; reckon run {1}/plan.yaml --resume {1} goes on from it",
                            find_checkpoint(folder).string(), folder.string()));
  throw_rank_failure("the run", end, folder / "error.json");
}

/// This process becomes the rank.
[[noreturn]] void become(std::vector<std::string> command) {
  std::vector<char*> arguments;
  for (std::string& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  ::setenv("OMP_NUM_THREADS", "1", 1);
  ::execv(arguments[0], arguments.data());
  throw RunError(fmt::format("{} cannot be started: {}", command[0], std::strerror(errno)));
}

}  // namespace

ExitCode run_command(const RunOptions& options, const Output& output) {
  const ConfigPaths paths = find_configs();
  const fs::path plan_file = find_plan(options.plan, paths);
  const auto overrides = overrides_of(options);
  const auto launched = enclosing_launcher();
  if (!launched)
    calibrate_if_needed(plan_file, overrides, paths, output, [&](const Plan& unmeasured) {
      check_run(options, unmeasured);
      find_resume_point(options.resume, unmeasured);
    });
  const Plan plan = resolve(load_checked_plan(plan_file, overrides, paths));
  if (!launched || launched->rank == 0) tell_about_hardware(plan, plan_file.string(), overrides, paths, output);
  require_rank_program("training");
  if (launched) check_launcher(*launched, plan, options);
  check_run(options, plan);

  const ResumePoint from = find_resume_point(options.resume, plan);
  const fs::path folder = folder_of(options, from);
  prepare_folder(folder);
  const bool leads = !launched || launched->rank == 0;
  const auto lock = leads ? std::make_unique<FolderLock>(folder) : nullptr;
  require_nothing_lost(folder, from);
  write_file(folder / "plan.yaml", write_plan(plan));  // by every process: the same text, put in place whole
  const auto command = rank_command(options, plan, folder, from);
  if (!leads) become(command);

  Predictions predictions = write_predictions(plan, folder, from);
  warn_before_run(options, predictions.predicted, output);
  for (const std::string& change : changed_course(from, plan))
    output.warning(fmt::format("{}: the losses will not be those of the run that is resumed", change));
  if (!output.json()) output.note(plan_summary(predictions.predicted));
  const Backend as = launched ? Backend::threads : backend_of(options, plan);  // launched: this one process is the rank
  ProcessSpec ranks = rank_processes(as, plan.world_size(), command);
  ranks.polite_signal = SIGUSR1;  // mpirun passes it on and lets the ranks save; SIGTERM it answers with SIGKILL
  ranks.seconds_to_end = static_cast<int>(std::ceil(plan.train.timeout.value));
  const ProcessEnd end = run_process(ranks);
  if (end.exit_code != 0 || end.interrupted_by) end_failed_run(end, folder, output);
  report_results(std::move(predictions), folder, paths, output);
  if (complete_checkpoints(folder / "checkpoints").empty())
    output.note("no checkpoint was saved; with train.checkpoint_every=N one is saved every N steps and after the last");
  return ExitCode::success;
}

}  // namespace reckon
