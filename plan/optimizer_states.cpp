#include "plan/optimizer_states.h"

#include <algorithm>

namespace reckon {

namespace {

bool is_narrow(const LocalParameter& parameter) {
  return parameter.elements() >= kSmallTensor;
}

void append(std::vector<StateRun>& runs, const FlatRange& range, bool narrow, bool joins) {
  if (range.count <= 0) return;
  if (joins && !runs.empty() && runs.back().range.end() == range.first && runs.back().narrow == narrow)
    runs.back().range.count += range.count;
  else runs.push_back({range, narrow});
}

/// Runs of one range; padding belongs to the run before it.
void append_runs(const ParameterLayout& layout, const FlatRange& range, std::vector<StateRun>& runs) {
  auto parameter = std::upper_bound(layout.parameters.begin(), layout.parameters.end(), range.first,
                                    [](std::int64_t place, const LocalParameter& p) { return place < p.offset; });
  if (parameter != layout.parameters.begin()) --parameter;
  std::int64_t first = range.first;
  bool joins = false, narrow = false;
  for (; first < range.end() && parameter != layout.parameters.end(); ++parameter) {
    narrow = is_narrow(*parameter);
    const auto next = std::next(parameter);
    const std::int64_t end = next == layout.parameters.end() ? range.end() : std::min(range.end(), next->offset);
    append(runs, {first, end - first}, narrow, joins);
    joins = joins || end > first;
    first = std::max(first, end);
  }
  append(runs, {first, range.end() - first}, narrow, joins);
}

}  // namespace

std::vector<StateRun> state_runs(const Plan& plan, const ParameterLayout& layout, std::int64_t shard) {
  const bool in_one_go = layout.shards == 1 && !layout.by_section;
  const std::vector<FlatRange> ranges =
      in_one_go ? std::vector{FlatRange{0, layout.padded_elements}} : layout.shard_ranges(shard);
  std::vector<StateRun> runs;
  for (const FlatRange& range : ranges) {
    if (is_block_scaled(plan.optimizer.states)) append_runs(layout, range, runs);
    else runs.push_back({range, false});
  }
  return runs;
}

Storage narrow_state(const Plan& plan) {
  return {plan.optimizer.states, plan.activations.block, ScaleFormat::fp32};
}

Bytes moment_bytes(const Plan& plan, const ParameterLayout& layout) {
  if (plan.optimizer.kind != OptimizerKind::adamw) return Bytes(0);
  const NumberFormat wide = is_block_scaled(plan.optimizer.states) ? NumberFormat::fp32 : plan.optimizer.states;
  Bytes largest;
  for (std::int64_t shard = 0; shard < layout.shards; ++shard) {
    Bytes sum;
    for (const StateRun& run : state_runs(plan, layout, shard))
      sum += 2 * storage_bytes(run.narrow ? narrow_state(plan) : Storage{wide}, run.range.count);
    largest = std::max(largest, sum);
  }
  return largest;
}

}  // namespace reckon
