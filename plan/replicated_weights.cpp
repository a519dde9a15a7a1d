#include "plan/replicated_weights.h"

#include <algorithm>

namespace reckon {

std::int64_t key_value_replicas(const Plan& plan) {
  return std::max<std::int64_t>(1, plan.parallel.tensor / std::max<std::int64_t>(1, plan.model.kv_heads));
}

std::int64_t gradient_replicas(const Plan& plan, const Parameter& parameter) {
  const bool sees_own_heads =
      plan.model.qk_norm && (parameter.name.ends_with(".q_norm.weight") || parameter.name.ends_with(".k_norm.weight"));
  if (parameter.split == Split::replicated) return plan.parallel.sequence || sees_own_heads ? plan.parallel.tensor : 1;
  return parameter.split == Split::kv_rows ? key_value_replicas(plan) : 1;
}

namespace {

/// visit(shard, range) for every part of the summed weights that lies in one shard of one unit.
template <class Visit>
void each_part(const Plan& plan, const ParameterLayout& layout, Split split, Visit visit) {
  for (const LocalParameter& parameter : layout.parameters) {
    if (parameter.whole.split != split || gradient_replicas(plan, parameter.whole) == 1) continue;
    const std::int64_t end = parameter.offset + parameter.elements();
    for (std::int64_t first = parameter.offset; first < end;) {
      const FlatRange& unit = layout.units[layout.unit_of(first)];
      const std::int64_t part = unit.count / layout.shards, shard = (first - unit.first) / part;
      const std::int64_t last = std::min(end, unit.first + (shard + 1) * part);
      visit(shard, FlatRange{first, last - first});
      first = last;
    }
  }
}

}  // namespace

std::vector<FlatRange> replicated_ranges(const Plan& plan, const ParameterLayout& layout, Split split,
                                         std::int64_t shard) {
  std::vector<FlatRange> ranges;
  each_part(plan, layout, split, [&](std::int64_t holder, const FlatRange& range) {
    if (holder == shard) ranges.push_back(range);
  });
  return ranges;
}

std::vector<std::int64_t> replicated_elements(const Plan& plan, const ParameterLayout& layout, Split split) {
  std::vector<std::int64_t> elements(static_cast<std::size_t>(layout.shards), 0);
  each_part(plan, layout, split, [&](std::int64_t holder, const FlatRange& range) {
    elements[static_cast<std::size_t>(holder)] += range.count;
  });
  return elements;
}

}  // namespace reckon
