#include "plan/stage_sections.h"

#include <algorithm>

#include "plan/pipeline_schedule.h"

namespace reckon {

namespace {

Section section_of(const ModelSpec& model, std::int64_t layer) {
  return model.layer_is_moe(layer) ? Section::moe_layer : Section::dense_layer;
}

}  // namespace

std::vector<ChunkSections> stage_sections(const Plan& plan, std::int64_t stage) {
  const std::vector<std::int64_t> layers = layers_per_virtual_stage(plan);
  std::vector<ChunkSections> chunks(static_cast<std::size_t>(plan.parallel.chunks));
  std::int64_t layer = 0, to_recompute = recomputed_layers(plan, stage);
  for (std::int64_t virtual_stage = 0; virtual_stage < plan.virtual_stages(); ++virtual_stage) {
    const std::int64_t end = layer + layers[static_cast<std::size_t>(virtual_stage)];
    if (virtual_stage % plan.parallel.pipeline != stage) {
      layer = end;
      continue;
    }
    ChunkSections& sections = chunks[static_cast<std::size_t>(virtual_stage / plan.parallel.pipeline)];
    if (virtual_stage == 0) sections.push_back({Section::embedding, kEmbeddingLayer, false});
    for (; layer < end; ++layer) sections.push_back({section_of(plan.model, layer), layer, to_recompute-- > 0});
    if (virtual_stage == plan.virtual_stages() - 1) sections.push_back({Section::head, kHeadLayer, false});
  }
  return chunks;
}

std::vector<SectionRun> runs_of(const ChunkSections& sections) {
  std::vector<SectionRun> runs;
  for (const StageSection& section : sections) {
    if (runs.empty() || variant(runs.back().section) != variant(section)) runs.push_back({section, 0});
    ++runs.back().count;
  }
  return runs;
}

std::int64_t stage_layers(const Plan& plan, std::int64_t stage) {
  const std::vector<std::int64_t> layers = layers_per_virtual_stage(plan);
  std::int64_t sum = 0;
  for (std::int64_t chunk = 0; chunk < plan.parallel.chunks; ++chunk)
    sum += layers[static_cast<std::size_t>(chunk * plan.parallel.pipeline + stage)];
  return sum;
}

std::int64_t recomputed_layers(const Plan& plan, std::int64_t stage) {
  const std::vector<std::int64_t>& listed = plan.activations.recompute_layers;
  if (plan.activations.recompute == Recompute::none || listed.empty()) return 0;
  const std::int64_t wanted = listed.size() == 1 ? listed.front() : listed.at(static_cast<std::size_t>(stage));
  return std::min(wanted, stage_layers(plan, stage));
}

bool has_section(const ModelSpec& model, Section section) {
  if (section == Section::embedding || section == Section::head) return true;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    if (section_of(model, layer) == section) return true;
  return false;
}

SectionWeights section_weights(const Plan& plan) {
  return section_weights(plan, section_elements(plan.model, plan.parallel.tensor, plan.parallel.expert));
}

SectionWeights section_weights(const Plan& plan, const SectionElements& e) {
  const bool spread = plan.parallel.expert > 1;
  SectionWeights weights;
  weights[static_cast<std::size_t>(Section::embedding)] = {e.embedding, 0};
  weights[static_cast<std::size_t>(Section::dense_layer)] = {e.dense_layer, 0};
  weights[static_cast<std::size_t>(Section::moe_layer)] = {e.moe_layer + (spread ? 0 : e.layer_experts),
                                                           spread ? e.layer_experts : 0};
  weights[static_cast<std::size_t>(Section::head)] = {e.head + (plan.parallel.pipeline > 1 ? e.tied_table : 0), 0};
  return weights;
}

Bytes weight_bytes(const Plan& plan, std::int64_t elements) {
  return storage_bytes({tensor_format(plan)}, elements);
}

Bytes gradient_bytes(const Plan& plan, std::int64_t elements) {
  return storage_bytes({plan.gradients.stored, plan.activations.block, plan.activations.scale}, elements);
}

WeightElements stage_weights(const SectionWeights& weights, const std::vector<ChunkSections>& chunks) {
  WeightElements sum;
  for (const ChunkSections& sections : chunks)
    for (const StageSection& section : sections) sum += weights[static_cast<std::size_t>(section.kind)];
  return sum;
}

}  // namespace reckon
