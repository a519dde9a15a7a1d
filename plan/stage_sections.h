// The sections that one pipeline rank runs, chunk by chunk in model order, and the weights that each of them holds.
// Cost model, simulator and runtime walk this one list.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/layer_ops.h"
#include "plan/parameter_layout.h"
#include "plan/plan.h"

namespace reckon {

struct StageSection {
  Section kind = Section::dense_layer;
  std::int64_t layer = 0;   // of the model; kEmbeddingLayer, kHeadLayer
  bool recomputed = false;  // in the plan's recompute mode; else nothing is recomputed beyond the class policies
};

/// Number of a section's kind and treatment: those with equal numbers differ in nothing but their layer.
inline constexpr std::size_t kSectionVariants = 8;
inline std::size_t variant(const StageSection& section) {
  return static_cast<std::size_t>(section.kind) * 2 + (section.recomputed ? 1 : 0);
}

using ChunkSections = std::vector<StageSection>;

/// Sections of every chunk of pipeline rank `stage`. The first `recompute_layers` layers of the stage are recomputed.
std::vector<ChunkSections> stage_sections(const Plan& plan, std::int64_t stage);

/// Equal neighbours of a chunk, counted together.
struct SectionRun {
  StageSection section;  // the first of them
  std::int64_t count = 0;
};
std::vector<SectionRun> runs_of(const ChunkSections& sections);

/// Layers of the stage, and how many of them are recomputed: its entry of `recompute_layers`, at most its layers; none
/// in mode none and where the list is empty (auto, before resolving).
std::int64_t stage_layers(const Plan& plan, std::int64_t stage);
std::int64_t recomputed_layers(const Plan& plan, std::int64_t stage);
bool has_section(const ModelSpec& model, Section section);

/// Weight elements of one rank by flat buffer (parameter_layout.h).
struct WeightElements {
  std::int64_t shared = 0;   // reduced over Group::gradient
  std::int64_t experts = 0;  // reduced over Group::expert_gradient; 0 without expert parallelism

  std::int64_t total() const { return shared + experts; }
  WeightElements& operator+=(const WeightElements& other) {
    shared += other.shared;
    experts += other.experts;
    return *this;
  }
};

/// By Section, of one section on one rank. The tied table counts in the embedding, and on another stage in the head.
using SectionWeights = std::array<WeightElements, 4>;
SectionWeights section_weights(const Plan& plan);
SectionWeights section_weights(const Plan& plan, const SectionElements& elements);

/// Bytes of weights in compute format, and of gradients in their stored format.
Bytes weight_bytes(const Plan& plan, std::int64_t elements);
Bytes gradient_bytes(const Plan& plan, std::int64_t elements);

/// Of all sections that the rank runs.
WeightElements stage_weights(const SectionWeights& weights, const std::vector<ChunkSections>& chunks);

}  // namespace reckon
