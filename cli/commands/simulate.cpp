#include "cli/commands/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "cli/hardware_notes.h"
#include "cli/load_checked_plan.h"
#include "cli/output_files.h"
#include "cli/page_parts.h"
#include "cli/trace_file.h"
#include "cost_model/estimate_op_times.h"
#include "cost_model/predict.h"
#include "cost_model/single_changes.h"
#include "plan/parse_quantity.h"
#include "report/format_quantity.h"
#include "report/simulation_json.h"
#include "report/write_console.h"
#include "report/write_file.h"
#include "sim/explain.h"
#include "sim/simulate_step.h"

namespace reckon {

namespace {

constexpr std::size_t kBlocksShown = 8, kRowsShown = 8;

std::optional<Bytes> limit_of(const SimulateOptions& options) {
  if (options.memory_limit.empty()) return std::nullopt;
  const Bytes limit = parse_bytes(options.memory_limit);
  if (limit.value > 0) return limit;
  throw ConfigError(
      fmt::format("--memory-limit {} leaves no memory; a size above 0 B is needed", options.memory_limit));
}

/// As overrides. --memory-limit simulates the plan as its device's memory resolves it; what `auto` would choose under
/// the limit, and every other change, is had with memory.limit.
std::string nearest_change(Plan open, const SimulateOptions& options, const SimulationOptions& how) {
  if (!how.memory_limit) return nearest_fitting_change(open);
  open.memory.limit = how.memory_limit;
  const std::string limit = "memory.limit=" + options.memory_limit;
  if (predict(resolve(open)).verdict.fits) return limit;
  const std::string change = nearest_fitting_change(open);
  return change.empty() ? "" : limit + " " + change;
}

std::string overflow_sentence(const RefusedAllocation& overflow, Bytes whole_limit) {
  std::string limit = with_unit(overflow.limit);
  if (overflow.communicators > Bytes(0))
    limit += fmt::format(" ({} less {} for communicators)", with_unit(whole_limit), with_unit(overflow.communicators));
  if (!overflow.op)
    return fmt::format(
        "the plan does not fit: on stage {} what lives during the whole step ({}, most of it {}) is more "
        "than {}",
        overflow.stage, with_unit(overflow.asked), name_of(overflow.category), limit);
  std::string place;
  if (overflow.micro_batch) place += fmt::format(" (micro-batch {}", *overflow.micro_batch);
  if (overflow.layer) place += fmt::format("{}layer {}", place.empty() ? " (" : ", ", *overflow.layer);
  if (!place.empty()) place += ")";
  const std::string held = overflow.reserved == overflow.allocated
                               ? "allocated"
                               : fmt::format("in segments, {} of it allocated, and no free part is large enough",
                                             with_unit(overflow.allocated));
  return fmt::format("the plan does not fit: on stage {} {}{} asks for {} of {} when {} of {} are {}", overflow.stage,
                     *overflow.op, place, with_unit(overflow.asked), name_of(overflow.category),
                     with_unit(overflow.reserved), limit, held);
}

const MemoryTimeline& fullest(const std::vector<MemoryTimeline>& timelines) {
  return *std::max_element(timelines.begin(), timelines.end(),
                           [](const auto& a, const auto& b) { return a.peak < b.peak; });
}

std::string peak_table(const MemoryTimeline& timeline, const TextStyle& style) {
  Table table(
      {fmt::format("alive at the peak of stage {}", timeline.stage), "category", "blocks", "micro-batches", "GiB", ""},
      {true, true, false, false, false, true});
  const auto blocks = alive_at_peak(timeline);
  for (std::size_t i = 0; i < std::min(blocks.size(), kBlocksShown); ++i) {
    const LiveBlocks& block = blocks[i];
    table.add({block.cause, std::string(name_of(block.category)), grouped(block.blocks), grouped(block.micro_batches),
               gib(block.bytes), bar(block.bytes / timeline.peak, 20, style)});
  }
  return table.text(style);
}

std::string critical_table(const Simulation& simulation, const TextStyle& style) {
  Table table({"critical path", "seconds", "share", ""}, {true, false, false, true});
  for (std::size_t i = 0; i < std::min(simulation.critical_path.size(), kRowsShown); ++i) {
    const TimeComponent& row = simulation.critical_path[i];
    const double share = row.seconds / to_seconds(simulation.step->end);
    table.add({row.component, with_unit(row.seconds), percent(share), bar(share, 20, style)});
  }
  return table.text(style);
}

SimulationDetails details_of(const Simulation& simulation, bool explained) {
  SimulationDetails details{simulation.events,       simulation.simulated_ranks, simulation.critical_path, {},
                            simulation.step_samples, simulation.out_of_memory};
  if (explained) details.savings = explain(*simulation.step);
  return details;
}

std::string saving_table(const Simulation& simulation, const TextStyle& style) {
  Table table({"if it were free", "saves", "share of the step", ""}, {true, false, false, true});
  for (const Saving& row : explain(*simulation.step)) {
    if (row.saved.value <= 0.0) break;
    const double share = row.saved / to_seconds(simulation.step->end);
    table.add({row.component, with_unit(row.saved), percent(share), bar(share, 20, style)});
  }
  return table.text(style);
}

std::string details(const Simulation& simulation, const TextStyle& style) {
  std::string text = fmt::format("{} events, {} of {} ranks simulated\n", grouped(simulation.events),
                                 simulation.simulated_ranks, simulation.profile.world_size);
  if (!simulation.critical_path.empty()) text += "\n" + critical_table(simulation, style);
  if (!simulation.memory.empty()) text += "\n" + peak_table(fullest(simulation.memory), style);
  if (simulation.step_samples.size() > 1)
    text += fmt::format("\n{} steps: {} to {}, median {}, 80 % between {} and {}\n", simulation.step_samples.size(),
                        with_unit(simulation.step_samples.front()), with_unit(simulation.step_samples.back()),
                        with_unit(quantile(simulation.step_samples, 0.5)),
                        with_unit(quantile(simulation.step_samples, 0.1)),
                        with_unit(quantile(simulation.step_samples, 0.9)));
  return text;
}

}  // namespace

ExitCode simulate_command(const SimulateOptions& options, const Output& output) {
  const ConfigPaths paths = find_configs();
  const Plan open = load_checked_plan(options.plan, options.overrides, paths), plan = resolve(open);
  require_distinct({{"--trace", options.trace}, {"--svg", options.picture}, {"--html", options.html}}, options.plan);
  tell_about_hardware(plan, options.plan, options.overrides, paths, output);
  SimulationOptions how;
  how.memory_limit = limit_of(options);
  how.samples = options.samples;
  how.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const StepProfile predicted = predict(plan);
  const OpTimes times = estimate_op_times(plan);
  Simulation simulation = simulate_step(predicted, times, how);
  if (simulation.out_of_memory) simulation.profile.verdict.nearest = nearest_change(open, options, how);
  if (options.samples > 1 && plan.sim.jitter == 0.0)
    output.warning("--samples has no effect without sim.jitter: every step is the same");
  if (!options.trace.empty()) write_trace_file(simulation, options.trace);
  if (!options.picture.empty()) write_picture_file(simulation, options.picture);
  if (!options.html.empty()) {
    Report report = plan_report(simulation.profile, simulation, times);
    report.profiles.push_back(predicted);
    write_file(options.html, report_page(report));
  }
  for (const std::string& warning : simulation.profile.warnings) output.warning(warning);
  if (output.json()) {
    output.result(simulation_json(simulation.profile, details_of(simulation, options.explain)));
  } else {
    std::string text = profile_text(simulation.profile, output.style()) + "\n" + details(simulation, output.style());
    if (options.explain) text += "\n" + saving_table(simulation, output.style());
    output.result(text);
  }
  if (!simulation.out_of_memory) return ExitCode::success;
  output.note("reckon: " + overflow_sentence(*simulation.out_of_memory, simulation.profile.verdict.limit));
  return ExitCode::does_not_fit;
}

}  // namespace reckon
