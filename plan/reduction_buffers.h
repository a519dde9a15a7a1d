// Which gradient sums travel in fewer bits than they are made in, and the buffers that this takes. A rank has one set
// of buffers, made once, large enough for its largest unit; so one such sum is under way at a time. Sums of FP32
// gradients sent as FP32 happen where the gradients lie.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/parameter_layout.h"
#include "plan/plan.h"

namespace reckon {

enum class ReductionPath {
  in_place,   // sent as they are
  converted,  // sent in a plain format of other width
  exchanged,  // block-scaled: all-to-all, sum in FP32, and for whole sums quantize again and all-gather
};
/// How a sum of `elements` gradients travels: below gradients.plain_below an exchange is not worth its second call.
ReductionPath reduction_path(const Plan& plan, std::int64_t elements);
/// Format in which the unscaled paths send.
NumberFormat plain_wire(const Plan& plan);
/// The first exchange of a sum (over Group::gradient, with ZeRO Group::shard) goes inside nodes and then between them:
/// asked for, and more than one rank is on a node and more than one node takes part.
bool exchanges_by_node(const Plan& plan);
Storage gradient_wire(const Plan& plan);

struct ReductionBuffers {
  std::int64_t wire_bytes = 0;    // what is sent and received
  std::int64_t sum_elements = 0;  // FP32 sum of one rank's part

  Bytes total() const { return Bytes(wire_bytes + 4 * sum_elements); }
  /// Grows to what a sum of `elements` over `ranks` needs.
  void cover(const Plan& plan, std::int64_t ranks, std::int64_t elements);
};

/// Of a rank whose units (parameter_layout.h) have these sizes.
ReductionBuffers reduction_buffers(const Plan& plan, const std::vector<std::int64_t>& units);

}  // namespace reckon
