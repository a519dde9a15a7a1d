#include "sim/fair_share.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace reckon {
namespace {

struct LinkState {
  double left = 0.0;  // capacity that stopped flows do not use
  int rising = 0;     // flows that have not stopped
  double level() const { return rising > 0 ? std::max(left, 0.0) / rising : std::numeric_limits<double>::infinity(); }
};

double lowest_level(const Flow& flow, const std::vector<LinkState>& links) {
  double level = flow.cap;
  for (const int link : flow.links) level = std::min(level, links[static_cast<std::size_t>(link)].level());
  return level;
}

}  // namespace

std::vector<double> fair_share(const std::vector<Flow>& flows, const std::vector<double>& capacities) {
  std::vector<LinkState> links(capacities.size());
  for (std::size_t i = 0; i < links.size(); ++i) links[i].left = capacities[i];
  for (const Flow& flow : flows)
    for (const int link : flow.links) ++links[static_cast<std::size_t>(link)].rising;

  std::vector<double> rates(flows.size(), 0.0);
  std::vector<std::size_t> rising(flows.size());
  for (std::size_t i = 0; i < rising.size(); ++i) rising[i] = i;
  while (!rising.empty()) {
    double level = std::numeric_limits<double>::infinity();
    for (const std::size_t i : rising) level = std::min(level, lowest_level(flows[i], links));
    // Whoever is limited at this level stops here. Decide for all before any link changes; the margin absorbs rounding.
    std::vector<std::size_t> stopped, others;
    for (const std::size_t i : rising)
      (lowest_level(flows[i], links) <= level * (1.0 + 1e-12) ? stopped : others).push_back(i);
    for (const std::size_t i : stopped) {
      rates[i] = level;
      for (const int link : flows[i].links) {
        links[static_cast<std::size_t>(link)].left -= level;
        --links[static_cast<std::size_t>(link)].rising;
      }
    }
    rising = std::move(others);
  }
  return rates;
}

}  // namespace reckon
