// What the exchange of keys and values on a ring sends, as the runtime's counters must show it: rank by rank, not only
// for the busiest one, which is what time is priced with.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/ring_transfers.h"
#include "plan/state_traffic.h"

namespace reckon {

/// What one layer's attention sends from one ring rank.
struct RingMessages {
  std::int64_t key_calls = 0;  // keys and values in compute precision, in forward; backward sends them again
  Bytes key_bytes;
  std::int64_t gradient_calls = 0;  // in the precision of sums, in backward
  Bytes gradient_bytes;

  RingMessages& operator+=(const RingMessages& other);
  bool operator==(const RingMessages&) const = default;
};

RingMessages ring_messages(const Plan& plan, const RingSends& sends);

/// What one ring rank of one replica sends for `rows` of its rows, for one layer.
struct RingLoad {
  std::int64_t rows = 0;
  RingMessages sent;
};

/// What the rank that sends most sends in one step, entry by entry. The passes through attention layers are those of
/// one micro-batch; all of a step's are counted.
std::vector<StateTraffic> ring_traffic(const Plan& plan, const std::vector<RingLoad>& loads,
                                       std::int64_t forward_passes, std::int64_t backward_passes);

}  // namespace reckon
