#pragma once

#include <vector>

#include "plan/rank_trace.h"
#include "runtime/comm/communicator.h"

namespace reckon {

/// Every rank's trace, moved to rank 0's clock by `clock_offset`, on every rank. Collective.
std::vector<RankTrace> exchange_traces(Communicator& world, const RankTrace& own, std::int64_t clock_offset);

}  // namespace reckon
