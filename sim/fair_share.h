// Max-min fair sharing of links: no flow can get more without a flow that has less, or as much, getting less still.
#pragma once

#include <vector>

namespace reckon {

struct Flow {
  double cap = 1.0;        // rate it would have alone
  std::vector<int> links;  // links it crosses, each with its whole rate; no link twice
};

/// Rates of `flows` over links of the given capacities (same unit as the caps), by progressive filling
/// (Bertsekas and Gallager, Data Networks, section 6.5): all rates rise together; the flows of a full link, and flows
/// at their cap, stop. A flow without links gets its cap.
std::vector<double> fair_share(const std::vector<Flow>& flows, const std::vector<double>& capacities);

}  // namespace reckon
