// Which slice of every weight one rank holds, and where it lies in the rank's flat parameter buffer. Gradients, master
// weights and optimizer states use the same offsets.
//
// The flat buffer is a row of units. A unit is what one call reduces or gathers, and what ZeRO divides: shard r holds
// the r-th equal part of every unit, so every rank sends and receives alike. Normally units are pieces of at most
// gradients.bucket bytes. Where a section's weights or gradients are whole only while it runs (divides_by_section) they
// are the sections: embedding, layers, head; a tied table, which two sections read, is a unit of its own.
//
// Weights whose gradients are reduced over the same ranks share a buffer: one for all weights, and where expert
// parallelism divides the routed experts a second one for them (reduced over Group::expert_gradient).
#pragma once

#include <cstdint>
#include <vector>

#include "plan/layer_ops.h"
#include "plan/parameters.h"
#include "plan/plan.h"
#include "plan/rank_grid.h"

namespace reckon {

constexpr std::int64_t kEmbeddingLayer = -1, kHeadLayer = -2, kNoLayer = -3;

struct LocalParameter {
  Parameter whole;
  std::vector<std::int64_t> local_shape;  // this rank's slice; vocabulary tables are padded to a multiple of tensor
  std::int64_t first = 0;                 // start of the slice along the split dimension of the (padded) whole tensor
  std::int64_t offset = 0;                // elements from the start of the flat buffer
  std::int64_t layer = -1;                // model layer; -1 embedding, -2 final norm and head
  bool tied_copy = false;                 // the last stage's copy of the first stage's table

  std::int64_t elements() const;
};

struct FlatRange {
  std::int64_t first = 0, count = 0;

  std::int64_t end() const { return first + count; }
  bool operator==(const FlatRange&) const = default;
};

struct ParameterLayout {
  std::vector<LocalParameter> parameters;  // model order of this rank's virtual stages
  std::int64_t elements = 0;               // sum, without padding
  std::int64_t padded_elements = 0;        // with the padding that makes every unit a multiple of parts
  std::int64_t shard_elements = 0;         // padded_elements / shards
  std::int64_t shards = 1;                 // ranks of Group::shard; 1 without ZeRO
  std::int64_t parts = 1;                  // into which every unit divides evenly: see reduction_parts
  bool by_section = false;                 // units are sections, otherwise buckets
  std::vector<FlatRange> units;            // they cover the buffer in order

  /// Where shard `shard` of a unit lies in the flat buffer.
  FlatRange shard_of(const FlatRange& unit, std::int64_t shard) const {
    return {unit.first + shard * (unit.count / shards), unit.count / shards};
  }
  /// All weights of shard `shard`, unit by unit: their places in the flat buffer. Inside the shard they lie one after
  /// the other.
  std::vector<FlatRange> shard_ranges(std::int64_t shard) const;
  /// Index of the unit that holds element `offset`.
  std::size_t unit_of(std::int64_t offset) const;
};

/// A section's weights or gradients are whole only while it runs: with ZeRO-2 and 3 over several ranks, and where main
/// gradients are stored in fewer bits than they are computed in.
bool divides_by_section(const Plan& plan);
/// Parts that every unit divides into: ZeRO shards, or all replicas where each sums a part of quantized gradients or
/// where gradients are quantized part by part.
std::int64_t reduction_parts(const Plan& plan);
std::int64_t round_up(std::int64_t elements, std::int64_t multiple);

/// The flat buffer of `padded` elements cut from its end, the order in which backward finishes it, into pieces of at
/// most gradients.bucket bytes on the wire that divide into `parts`: all but the first of bucket_elements.
std::int64_t bucket_elements(const Plan& plan, std::int64_t parts);
std::vector<FlatRange> bucket_units(const Plan& plan, std::int64_t padded, std::int64_t parts);

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

/// Padded sizes of the units of one section where units are sections: those that it holds, and those that its ops read
/// (the head of a model with a tied table on one stage reads the embedding's). Without routed experts that expert
/// parallelism spreads: those are one unit of their own buffer.
std::vector<std::int64_t> held_units(const Plan& plan, const SectionElements& elements, Section section);
std::vector<std::int64_t> read_units(const Plan& plan, const SectionElements& elements, Section section);

/// Vocabulary rows on each tensor rank: ceil(vocabulary / tensor).
std::int64_t local_vocabulary(const ModelSpec& model, std::int64_t tensor);
/// KV heads on each tensor rank, at least one (heads are replicated when there are fewer than ranks).
std::int64_t local_kv_heads(const ModelSpec& model, std::int64_t tensor);
/// ZeRO shards of the two buffers: ranks of Group::shard, and of those that hold the same experts.
std::int64_t zero_shards(const ParallelSpec& parallel);
std::int64_t expert_zero_shards(const ParallelSpec& parallel);

}  // namespace reckon
