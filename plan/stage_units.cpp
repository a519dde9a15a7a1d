#include "plan/stage_units.h"

#include "plan/reduction_buffers.h"
#include "plan/stage_sections.h"

namespace reckon {

namespace {

/// The units of bucket_units, counted: a rest, then pieces of equal size.
std::vector<EqualUnits> in_buckets(const Plan& plan, std::int64_t elements, std::int64_t parts) {
  const std::int64_t padded = round_up(elements, parts), piece = bucket_elements(plan, parts);
  std::vector<EqualUnits> units;
  if (padded % piece > 0) units.push_back({padded % piece, 1});
  if (padded >= piece) units.push_back({piece, padded / piece});
  return units;
}

SectionElements elements_of(const Plan& plan) {
  return section_elements(plan.model, plan.parallel.tensor, plan.parallel.expert);
}

}  // namespace

SectionCounts section_counts(const Plan& plan, std::int64_t stage) {
  SectionCounts counts;
  for (const ChunkSections& sections : stage_sections(plan, stage))
    for (const StageSection& section : sections) {
      switch (section.kind) {
        case Section::embedding: ++counts.embedding; break;
        case Section::dense_layer: ++counts.dense; break;
        case Section::moe_layer: ++counts.moe; break;
        case Section::head: ++counts.head; break;
      }
    }
  return counts;
}

std::vector<EqualUnits> rank_units(const Plan& plan, const SectionElements& e, const SectionCounts& counts) {
  if (!divides_by_section(plan)) {
    const std::int64_t experts = plan.parallel.expert == 1 ? e.layer_experts : 0;
    const std::int64_t table = plan.parallel.pipeline > 1 ? e.tied_table : 0;
    const std::int64_t sum = counts.embedding * e.embedding + counts.dense * e.dense_layer +
                             counts.moe * (e.moe_layer + experts) + counts.head * (e.head + table);
    return in_buckets(plan, sum, reduction_parts(plan));
  }
  std::vector<EqualUnits> units;
  const auto add = [&](Section section, std::int64_t count) {
    const std::vector<std::int64_t> held = held_units(plan, e, section), read = read_units(plan, e, section);
    for (std::size_t i = 0; i < read.size() && count > 0; ++i) units.push_back({read[i], count, i >= held.size()});
  };
  add(Section::embedding, counts.embedding);
  add(Section::dense_layer, counts.dense);
  add(Section::moe_layer, counts.moe);
  add(Section::head, counts.head);
  return units;
}

std::vector<EqualUnits> rank_expert_units(const Plan& plan, const SectionElements& elements,
                                          const SectionCounts& counts) {
  const std::int64_t layers = counts.moe, experts = elements.layer_experts;
  if (plan.parallel.expert == 1 || layers == 0) return {};
  const std::int64_t shards = expert_zero_shards(plan.parallel);
  if (divides_by_section(plan)) return {{round_up(experts, shards), layers}};
  return in_buckets(plan, layers * experts, shards);
}

std::vector<EqualUnits> stage_units(const Plan& plan, std::int64_t stage) {
  return rank_units(plan, elements_of(plan), section_counts(plan, stage));
}

std::vector<EqualUnits> stage_expert_units(const Plan& plan, std::int64_t stage) {
  if (plan.parallel.expert == 1) return {};
  return rank_expert_units(plan, elements_of(plan), section_counts(plan, stage));
}

namespace {

SectionBytes section_bytes(const Plan& plan, const SectionElements& elements, Section section) {
  const bool sharded = zero_shards(plan.parallel) > 1;
  std::vector<std::int64_t> units = read_units(plan, elements, section);
  if (section == Section::moe_layer && plan.parallel.expert > 1)
    units.push_back(round_up(elements.layer_experts, expert_zero_shards(plan.parallel)));
  SectionBytes bytes;
  for (const std::int64_t unit : units) {
    if (plan.parallel.zero >= 3 && sharded) bytes.gathered += storage_bytes({tensor_format(plan)}, unit);
    if (!divides_by_section(plan)) continue;
    bytes.gradient += Bytes(4 * unit);
    if (plan.parallel.zero >= 2 && sharded && reduction_path(plan, unit) == ReductionPath::in_place)
      bytes.being_reduced += Bytes(4 * unit);
  }
  return bytes;
}

}  // namespace

std::array<SectionBytes, 4> section_bytes(const Plan& plan) {
  return section_bytes(plan, elements_of(plan));
}

std::array<SectionBytes, 4> section_bytes(const Plan& plan, const SectionElements& elements) {
  std::array<SectionBytes, 4> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = section_bytes(plan, elements, static_cast<Section>(i));
  return bytes;
}

}  // namespace reckon
