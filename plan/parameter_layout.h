// Which slice of every weight one rank holds, and where it lies in the rank's flat parameter buffer. Gradients, master
// weights and optimizer states use the same offsets; ZeRO shards are equal slices of the flat buffer.
//
// Weights whose gradients are reduced over the same ranks share a buffer: one for all weights, and where expert
// parallelism divides the routed experts a second one for them (reduced over Group::expert_gradient).
#pragma once

#include <cstdint>
#include <vector>

#include "plan/parameters.h"
#include "plan/plan.h"
#include "plan/rank_grid.h"

namespace reckon {

constexpr std::int64_t kEmbeddingLayer = -1, kHeadLayer = -2;

struct LocalParameter {
  Parameter whole;
  std::vector<std::int64_t> local_shape;  // this rank's slice; vocabulary tables are padded to a multiple of tensor
  std::int64_t first = 0;                 // start of the slice along the split dimension of the (padded) whole tensor
  std::int64_t offset = 0;                // elements from the start of the flat buffer
  std::int64_t layer = -1;                // model layer; -1 embedding, -2 final norm and head
  bool tied_copy = false;                 // the last stage's copy of the first stage's table

  std::int64_t elements() const;
};

struct ParameterLayout {
  std::vector<LocalParameter> parameters;  // model order of this rank's virtual stages
  std::int64_t elements = 0;               // sum, without padding
  std::int64_t padded_elements = 0;        // rounded up so that every ZeRO shard is equal
  std::int64_t shard_elements = 0;         // padded_elements / shards
  std::int64_t shards = 1;                 // ranks of Group::shard; 1 without ZeRO
};

/// Layout of the rank at `coordinates`: all its weights, but for the routed experts when parallel.expert > 1. The tied
/// table lies on the first and, as a tied_copy with layer = kHeadLayer, on the last stage if that is another rank.
/// Throws std::logic_error on an unchecked plan (a width that tensor or expert does not divide).
ParameterLayout parameter_layout(const Plan& plan, const Coordinates& coordinates);

/// The routed experts of that rank when parallel.expert > 1 (experts are dealt in consecutive runs), otherwise empty.
ParameterLayout expert_parameter_layout(const Plan& plan, const Coordinates& coordinates);

/// Weight elements on one rank by section: what the layouts sum to, without placing them. Depends on nothing but its
/// arguments, so a search computes it once for each pair of degrees.
struct SectionElements {
  std::int64_t embedding = 0;      // token and position tables, embedding norm
  std::int64_t tied_table = 0;     // the table alone, for the last stage; 0 if not tied
  std::int64_t dense_layer = 0;    // one layer with the dense FFN; 0 if there is none
  std::int64_t moe_layer = 0;      // one MoE layer without its routed experts; 0 if there is none
  std::int64_t layer_experts = 0;  // routed experts of one MoE layer on this rank
  std::int64_t head = 0;           // final norm and head
};
SectionElements section_elements(const ModelSpec& model, std::int64_t tensor, std::int64_t expert);

/// Vocabulary rows on each tensor rank: ceil(vocabulary / tensor).
std::int64_t local_vocabulary(const ModelSpec& model, std::int64_t tensor);
/// KV heads on each tensor rank, at least one (heads are replicated when there are fewer than ranks).
std::int64_t local_kv_heads(const ModelSpec& model, std::int64_t tensor);
/// ZeRO shards of the two buffers: ranks of Group::shard, and of those that hold the same experts.
std::int64_t zero_shards(const ParallelSpec& parallel);
std::int64_t expert_zero_shards(const ParallelSpec& parallel);

}  // namespace reckon
