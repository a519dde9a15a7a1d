// Every allocation and free of one pipeline rank in the first steps of its schedule, in order: states, then action by
// action the events of its sections. Replaying it gives the caching allocator's reserved bytes, and the first request
// that a memory limit refuses.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/layer_ops.h"
#include "plan/memory_category.h"
#include "plan/plan.h"

namespace reckon {

struct Allocation {
  bool allocates = true;
  int block = 0;
  Bytes bytes;
  MemoryCategory category = MemoryCategory::transient;
};

/// The sequence of rank `stage`, up to the schedule's steady state (`micro_batches` beyond it repeat).
std::vector<Allocation> allocation_sequence(const Plan& plan, const AttentionWork& work, std::int64_t stage);

Bytes peak_allocated(const std::vector<Allocation>& sequence);

/// Segments that PyTorch's caching allocator reserves for the sequence, at their highest.
Bytes peak_reserved(const std::vector<Allocation>& sequence);

/// The first allocation that would take the sum above `limit`; nothing if none does.
const Allocation* first_refused(const std::vector<Allocation>& sequence, Bytes limit);

}  // namespace reckon
