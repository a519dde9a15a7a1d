// Bytes of parameters, gradients and optimizer states on one rank under ZeRO 0-3 (arXiv 1910.02054; the 18 bytes a
// parameter of Megatron-LM's distributed optimizer page: 2 weight, 4 gradient, 4 master, 4 + 4 moments).
//
// Weights that are reduced over different ranks lie in different flat buffers: all weights, and the routed experts
// where expert parallelism divides them. A sharded buffer is padded so that its shards are equal.
#pragma once

#include <cstdint>

#include "plan/plan.h"
#include "plan/stage_sections.h"

namespace reckon {

struct StateMemory {
  Bytes parameters, gradients, optimizer;
  Bytes master;  // part of optimizer: the fp32 weights, where they are not the parameters themselves

  Bytes total() const { return parameters + gradients + optimizer; }
};

StateMemory state_memory(const Plan& plan, WeightElements weights);

/// With gradients.bucket_copies and several replicas, the copy of all gradients in compute precision.
Bytes bucket_copies(const Plan& plan, std::int64_t elements);

/// kernels.pending_collectives whole [tokens, hidden] tensors: a caching allocator does not give a tensor away before
/// the collective that read it on another stream is over (PyTorch's record_stream), and the host is up to a launch
/// queue ahead of it. None in a pipeline, where the host waits for each neighbour's tensor.
Bytes pending_tensors(const Plan& plan);

/// Both, and the buffers of gradient sums, for `elements` weights in buckets.
Bytes communication_buffers(const Plan& plan, std::int64_t elements);

/// The last message to the next and to the previous pipeline stage: this project's runtime (CPUs) keeps each until the
/// next one is sent, and has room for it from the start. [micro_batch * tokens, hidden] each.
Bytes held_messages(const Plan& plan, std::int64_t micro_batch, std::int64_t stage);

}  // namespace reckon
