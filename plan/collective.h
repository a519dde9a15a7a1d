// Collectives and the groups of ranks they run over.
#pragma once

#include <string_view>

#include "plan/units.h"

namespace reckon {

enum class Collective { all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send_receive };

/// One dimension of the rank grid, or a product of several.
enum class Group {
  tensor,           // tensor parallel
  ulysses,          // HSAP's intra group: all-to-all over heads
  ring,             // HSAP's inter group: key/value blocks
  expert,           // expert parallel
  data,             // data parallel, replicas of the model
  gradient,         // data x ulysses x ring: the ranks that hold the same weights
  expert_gradient,  // the ranks of `gradient` that hold the same experts
  shard,            // the ranks of `gradient` that a ZeRO shard is spread over (all of them, or zero_group of them)
  replica,          // the ranks of `gradient` that hold the same ZeRO shard
  gradient_inside,  // the ranks of one node among those that sum gradients first (gradient; with ZeRO shard)
  gradient_across,  // one of them on each node
  pipeline,         // neighbours along the pipeline
  embedding,        // first and last stage, for tied tables
  world,
};

std::string_view name_of(Collective collective);
std::string_view name_of(Group group);

/// One call: `bytes` is the whole tensor as nccl-tests counts it (all-gather: gathered size; all-to-all: one rank's
/// send total; send_receive: the message).
struct CollectiveCall {
  Collective collective = Collective::all_reduce;
  Group group = Group::tensor;
  Bytes bytes;
  int calls = 1;
  bool fp32 = false;  // sums, whatever the compute format
};

/// Whether the op computes while the call is under way: attention goes on with the block that it has while the ring
/// passes the next one (docs/context_parallelism.md).
inline bool is_beside(const CollectiveCall& call) {
  return call.group == Group::ring;
}

/// Bytes one rank sends in one call over `ranks` ranks: all_reduce 2S(n-1)/n, gather, scatter and all_to_all S(n-1)/n,
/// broadcast and send_receive S (hardware page 3.2).
double bytes_sent_per_rank(Collective collective, Bytes bytes, int ranks);

}  // namespace reckon
