// Seconds of one op of the op list on one rank, forward and backward, with its collectives priced apart.
#pragma once

#include <array>
#include <cstddef>

#include "cost_model/collective_cost.h"
#include "plan/op_times.h"
#include "plan/plan.h"

namespace reckon {

/// Layout on nodes of every group that a plan uses, looked up once.
class GroupLayouts {
 public:
  explicit GroupLayouts(const Plan& plan);
  const GroupLayout& operator[](Group group) const { return layouts_[static_cast<std::size_t>(group)]; }

 private:
  std::array<GroupLayout, static_cast<std::size_t>(Group::world) + 1> layouts_;
};

/// Time of `op` without the launch floor (estimate_op_times adds it over a whole section).
OpTime op_time(const Plan& plan, const GroupLayouts& layouts, const Op& op);

/// FlashAttention-like kernels: forward or backward (2.5 times the FLOPs) of the visible pairs; `traffic` is the bytes
/// of q, k, v, o and their gradients.
CostEstimate attention_cost(const HardwareSpec& hardware, const AttentionShape& shape, double traffic,
                            NumberFormat format, bool backward);

/// Two products per head over whole rows of `keys` tokens with the score matrix in memory between them.
CostEstimate unfused_attention_cost(const HardwareSpec& hardware, const AttentionShape& shape, std::int64_t keys,
                                    NumberFormat format, bool backward);

/// A kernel bound by `bytes` read and written.
CostEstimate memory_bound_cost(const HardwareSpec& hardware, const OpFit& fit, double bytes);

}  // namespace reckon
