#include "plan/parameter_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "plan/layer_example.h"
#include "plan/pipeline_schedule.h"

namespace reckon {

namespace {

constexpr std::string_view kTable = "model.embed_tokens.weight";

/// The part of a tensor group's rank in one weight.
struct TensorSlice {
  const ModelSpec& model;
  std::int64_t ranks = 1, rank = 0;
};

std::int64_t divided(const Parameter& parameter, std::int64_t extent, std::int64_t ranks) {
  if (extent % ranks != 0)
    throw std::logic_error(
        fmt::format("layout of an unchecked plan: {} of {} is not divisible by {}", extent, parameter.name, ranks));
  return extent / ranks;
}

LocalParameter slice(Parameter whole, std::int64_t layer, const TensorSlice& tensor) {
  LocalParameter local{std::move(whole), {}, 0, 0, layer, false};
  local.local_shape = local.whole.shape;
  std::int64_t& rows = local.local_shape[0];
  switch (local.whole.split) {
    case Split::replicated: break;
    case Split::rows:
      rows = layer < 0 ? local_vocabulary(tensor.model, tensor.ranks) : divided(local.whole, rows, tensor.ranks);
      local.first = tensor.rank * rows;
      break;
    case Split::columns:
      local.local_shape[1] = divided(local.whole, local.local_shape[1], tensor.ranks);
      local.first = tensor.rank * local.local_shape[1];
      break;
    case Split::kv_rows: {
      const std::int64_t head_width = rows / tensor.model.kv_heads;
      rows = local_kv_heads(tensor.model, tensor.ranks) * head_width;
      local.first = tensor.rank * tensor.model.kv_heads / tensor.ranks * head_width;
      break;
    }
  }
  return local;
}

/// The weights of one rank in model order; `tied_copy` marks a table that another stage holds too.
std::vector<LocalParameter> rank_parameters(const Plan& plan, const Coordinates& at) {
  const ModelSpec& model = plan.model;
  const TensorSlice tensor{model, plan.parallel.tensor, at.tensor};
  const std::vector<std::int64_t> layers = layers_per_virtual_stage(plan);
  std::vector<LocalParameter> list;
  const auto append = [&](const std::vector<Parameter>& section, std::int64_t layer) {
    for (const Parameter& parameter : section) list.push_back(slice(parameter, layer, tensor));
  };
  for (std::int64_t chunk = 0; chunk < plan.parallel.chunks; ++chunk) {
    const auto stage = static_cast<std::size_t>(chunk * plan.parallel.pipeline + at.pipeline);
    if (stage == 0) append(embedding_parameters(model), kEmbeddingLayer);
    const std::int64_t first =
        std::accumulate(layers.begin(), layers.begin() + static_cast<std::ptrdiff_t>(stage), std::int64_t{0});
    for (std::int64_t layer = first; layer < first + layers[stage]; ++layer)
      append(layer_parameters(model, layer), layer);
    if (stage + 1 != layers.size()) continue;
    append(head_parameters(model), kHeadLayer);
    if (model.tied_head && plan.parallel.pipeline > 1) {
      list.push_back(slice(embedding_parameters(model).front(), kHeadLayer, tensor));
      list.back().tied_copy = true;
    }
  }
  return list;
}

/// Places the parameters one after the other; a unit begins where section or tied table changes.
void place_by_section(bool tied_head, ParameterLayout& layout) {
  const auto is_tied_table = [&](const LocalParameter& p) { return tied_head && p.whole.name == kTable; };
  const LocalParameter* before = nullptr;
  for (LocalParameter& parameter : layout.parameters) {
    const bool joins =
        before != nullptr && before->layer == parameter.layer && !is_tied_table(parameter) && !is_tied_table(*before);
    if (!joins) {
      if (!layout.units.empty()) layout.units.back().count = round_up(layout.units.back().count, layout.parts);
      layout.units.push_back({layout.units.empty() ? 0 : layout.units.back().end(), 0});
    }
    parameter.offset = layout.units.back().end();
    layout.units.back().count += parameter.elements();
    layout.elements += parameter.elements();
    before = &parameter;
  }
  if (!layout.units.empty()) layout.units.back().count = round_up(layout.units.back().count, layout.parts);
  layout.padded_elements = layout.units.empty() ? 0 : layout.units.back().end();
}

void place_in_buckets(const Plan& plan, ParameterLayout& layout) {
  for (LocalParameter& parameter : layout.parameters) {
    parameter.offset = layout.elements;
    layout.elements += parameter.elements();
  }
  layout.padded_elements = round_up(layout.elements, layout.parts);
  layout.units = bucket_units(plan, layout.padded_elements, layout.parts);
}

ParameterLayout lay_out(const Plan& plan, std::vector<LocalParameter> parameters, std::int64_t shards,
                        std::int64_t parts) {
  ParameterLayout layout;
  layout.parameters = std::move(parameters);
  layout.shards = shards;
  layout.parts = parts;
  layout.by_section = divides_by_section(plan);
  if (layout.by_section) place_by_section(plan.model.tied_head, layout);
  else place_in_buckets(plan, layout);
  layout.shard_elements = layout.padded_elements / shards;
  return layout;
}

/// Consecutive experts go to consecutive ranks of the expert group.
std::int64_t expert_rank(const ParallelSpec& parallel, const Coordinates& at) {
  return (at.ulysses + parallel.ulysses * (at.ring + parallel.ring * at.data)) % parallel.expert;
}

std::int64_t local_experts(const ModelSpec& model, std::int64_t expert_ranks) {
  if (model.moe.experts % expert_ranks != 0)
    throw std::logic_error(fmt::format("layout of an unchecked plan: {} experts are not divisible by {}",
                                       model.moe.experts, expert_ranks));
  return model.moe.experts / expert_ranks;
}

}  // namespace

std::int64_t LocalParameter::elements() const {
  return std::accumulate(local_shape.begin(), local_shape.end(), std::int64_t{1}, std::multiplies<>());
}

ParameterLayout parameter_layout(const Plan& plan, const Coordinates& coordinates) {
  std::vector<LocalParameter> list = rank_parameters(plan, coordinates);
  if (plan.parallel.expert > 1) std::erase_if(list, [](const LocalParameter& p) { return p.whole.is_routed_expert(); });
  return lay_out(plan, std::move(list), zero_shards(plan.parallel), reduction_parts(plan));
}

ParameterLayout expert_parameter_layout(const Plan& plan, const Coordinates& coordinates) {
  std::vector<LocalParameter> mine;
  if (plan.parallel.expert > 1 && plan.model.is_moe()) {
    const std::int64_t count = local_experts(plan.model, plan.parallel.expert);
    const std::int64_t first = expert_rank(plan.parallel, coordinates) * count;
    for (LocalParameter& parameter : rank_parameters(plan, coordinates))
      if (parameter.whole.expert >= first && parameter.whole.expert < first + count)
        mine.push_back(std::move(parameter));
  }
  const std::int64_t shards = expert_zero_shards(plan.parallel);
  return lay_out(plan, std::move(mine), shards, shards);
}

SectionElements section_elements(const ModelSpec& model, std::int64_t tensor, std::int64_t expert) {
  const TensorSlice part{model, tensor, 0};
  const auto sum = [&](const std::vector<Parameter>& list, std::int64_t layer, bool experts) {
    std::int64_t total = 0;
    for (const Parameter& parameter : list)
      if (parameter.is_routed_expert() == experts) total += slice(parameter, layer, part).elements();
    return total;
  };
  SectionElements elements;
  elements.embedding = sum(embedding_parameters(model), kEmbeddingLayer, false);
  if (model.tied_head) elements.tied_table = local_vocabulary(model, tensor) * model.hidden;
  elements.head = sum(head_parameters(model), kHeadLayer, false);
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const bool moe = model.layer_is_moe(layer);
    std::int64_t& rest = moe ? elements.moe_layer : elements.dense_layer;
    if (rest != 0) continue;
    const std::vector<Parameter> list = layer_with_one_expert(model, layer);
    rest = sum(list, layer, false);
    if (moe) elements.layer_experts = sum(list, layer, true) * local_experts(model, expert);
  }
  return elements;
}

std::vector<std::int64_t> held_units(const Plan& plan, const SectionElements& elements, Section section) {
  const std::int64_t parts = reduction_parts(plan);
  const auto units = [&](std::int64_t table, std::int64_t rest) {
    std::vector<std::int64_t> sizes;
    for (const std::int64_t size : {table, rest})
      if (size > 0) sizes.push_back(round_up(size, parts));
    return sizes;
  };
  switch (section) {
    case Section::embedding: return units(elements.tied_table, elements.embedding - elements.tied_table);
    case Section::dense_layer: return units(0, elements.dense_layer);
    case Section::moe_layer:
      return units(0, elements.moe_layer + (plan.parallel.expert == 1 ? elements.layer_experts : 0));
    case Section::head: return units(plan.parallel.pipeline > 1 ? elements.tied_table : 0, elements.head);
  }
  return {};
}

std::vector<std::int64_t> read_units(const Plan& plan, const SectionElements& elements, Section section) {
  std::vector<std::int64_t> units = held_units(plan, elements, section);
  if (section == Section::head && plan.parallel.pipeline == 1 && elements.tied_table > 0)
    units.push_back(round_up(elements.tied_table, reduction_parts(plan)));
  return units;
}

std::vector<FlatRange> ParameterLayout::shard_ranges(std::int64_t shard) const {
  std::vector<FlatRange> ranges;
  for (const FlatRange& unit : units) ranges.push_back(shard_of(unit, shard));
  return ranges;
}

std::size_t ParameterLayout::unit_of(std::int64_t offset) const {
  const auto after = std::upper_bound(units.begin(), units.end(), offset,
                                      [](std::int64_t place, const FlatRange& unit) { return place < unit.first; });
  if (after == units.begin() || offset >= std::prev(after)->end())
    throw std::logic_error(fmt::format("element {} lies outside a flat buffer of {}", offset, padded_elements));
  return static_cast<std::size_t>(after - units.begin()) - 1;
}

std::int64_t round_up(std::int64_t elements, std::int64_t multiple) {
  return (elements + multiple - 1) / multiple * multiple;
}

bool divides_by_section(const Plan& plan) {
  return (plan.parallel.zero >= 2 && zero_shards(plan.parallel) > 1) || plan.gradients.stored != NumberFormat::fp32;
}

std::int64_t reduction_parts(const Plan& plan) {
  const bool exchanges = plan.gradients.reduce == GradientReduce::all_to_all_sum;
  if (exchanges || is_block_scaled(plan.gradients.stored)) return plan.parallel.data * plan.context();
  return zero_shards(plan.parallel);
}

std::int64_t bucket_elements(const Plan& plan, std::int64_t parts) {
  const std::int64_t most = plan.gradients.bucket.value * 8 / payload_bits(plan.gradients.wire);
  return std::max(parts, most / parts * parts);
}

std::vector<FlatRange> bucket_units(const Plan& plan, std::int64_t padded, std::int64_t parts) {
  const std::int64_t piece = bucket_elements(plan, parts);
  std::vector<FlatRange> units;
  for (std::int64_t end = padded; end > 0; end = units.back().first)
    units.push_back({std::max<std::int64_t>(0, end - piece), std::min(piece, end)});
  std::reverse(units.begin(), units.end());
  return units;
}

std::int64_t local_vocabulary(const ModelSpec& model, std::int64_t tensor) {
  return (model.vocabulary + tensor - 1) / tensor;
}

std::int64_t local_kv_heads(const ModelSpec& model, std::int64_t tensor) {
  const bool replicated = tensor > model.kv_heads;
  if (replicated ? tensor % model.kv_heads != 0 : model.kv_heads % tensor != 0)
    throw std::logic_error(
        fmt::format("layout of an unchecked plan: {} KV heads on {} tensor ranks", model.kv_heads, tensor));
  return replicated ? 1 : model.kv_heads / tensor;
}

std::int64_t zero_shards(const ParallelSpec& parallel) {
  if (parallel.zero == 0) return 1;
  return parallel.zero_group > 0 ? parallel.zero_group : parallel.data * parallel.ulysses * parallel.ring;
}

std::int64_t expert_zero_shards(const ParallelSpec& parallel) {
  const std::int64_t shards =
      zero_shards(parallel);  // consecutive ranks, of which every expert-th has the same experts
  if (shards % parallel.expert != 0 && parallel.expert % shards != 0)
    throw std::logic_error(
        fmt::format("layout of an unchecked plan: {} shards over {} expert ranks", shards, parallel.expert));
  return std::max<std::int64_t>(1, shards / parallel.expert);
}

}  // namespace reckon
