#include "cli/commands/simulate.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/load_checked_plan.h"
#include "cli/trace_file.h"
#include "cost_model/estimate_op_times.h"
#include "cost_model/predict.h"
#include "plan/parse_quantity.h"
#include "report/format_quantity.h"
#include "report/profile_json.h"
#include "report/write_console.h"
#include "sim/simulate_step.h"

namespace reckon {

namespace {

constexpr std::size_t kBlocksShown = 8;

std::string overflow_sentence(const OutOfMemory& overflow) {
  const std::string when = overflow.op.empty() ? "what lives during the whole step does not fit"
                                               : fmt::format("{} asks for {}", overflow.op, with_unit(overflow.asked));
  return fmt::format("the plan does not fit: on stage {} {} of {} when {} of {} are allocated", overflow.stage, when,
                     name_of(overflow.category), with_unit(overflow.allocated), with_unit(overflow.limit));
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

std::string details(const Simulation& simulation, const TextStyle& style) {
  std::string text = fmt::format("{} events, {} of {} ranks simulated\n", grouped(simulation.events),
                                 simulation.simulated_ranks, simulation.profile.world_size);
  if (!simulation.memory.empty()) text += "\n" + peak_table(fullest(simulation.memory), style);
  if (simulation.step_samples.size() > 1)
    text += fmt::format("\n{} steps: {} to {}\n", simulation.step_samples.size(),
                        with_unit(simulation.step_samples.front()), with_unit(simulation.step_samples.back()));
  return text;
}

}  // namespace

ExitCode simulate_command(const SimulateOptions& options, const Output& output) {
  const Plan plan = resolve(load_checked_plan(options.plan, options.overrides, find_configs()));
  SimulationOptions how;
  if (!options.memory_limit.empty()) how.memory_limit = parse_bytes(options.memory_limit);
  const Simulation simulation = simulate_step(predict(plan), estimate_op_times(plan), how);
  if (!options.trace.empty()) write_trace_file(simulation, options.trace);
  for (const std::string& warning : simulation.profile.warnings) output.warning(warning);
  output.result(output.json()
                    ? profile_json(simulation.profile)
                    : profile_text(simulation.profile, output.style()) + "\n" + details(simulation, output.style()));
  if (!simulation.out_of_memory) return ExitCode::success;
  output.note("reckon: " + overflow_sentence(*simulation.out_of_memory));
  return ExitCode::does_not_fit;
}

}  // namespace reckon
