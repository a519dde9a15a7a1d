// Everything that a plan allocates in one piece, with its size: what an out-of-memory line can mean.
#pragma once

#include <vector>

#include "plan/explanation.h"
#include "plan/plan.h"

namespace reckon {

/// Of a resolved plan: activations, their gradients and workspaces, logits in FP32, weights, gradients and moments (per
/// rank, and whole), flat buffers and their shards, gathered layers, buckets. Each once.
std::vector<SizedTensor> plan_tensors(const Plan& resolved);

/// Those of the asked size: within the printed digits, then as the caching allocator rounds them to segments
/// (plan/caching_allocator.h), then those within 2 %; best first. Where there is none, the three that are closest.
std::vector<SizeMatch> tensors_of_size(const std::vector<SizedTensor>& tensors, const OutOfMemoryLine& line);

}  // namespace reckon
