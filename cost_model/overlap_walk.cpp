#include "cost_model/overlap_walk.h"

#include <algorithm>
#include <limits>

namespace reckon {

namespace {

struct Running {
  double left = 0, rate = 0;

  double time_to_end() const { return left > 0 ? left / rate : std::numeric_limits<double>::infinity(); }
  void advance(double time) {
    // What is left after rounding is less than a billionth of what ran: it has ended.
    const double rest = left - rate * time;
    left = rest > 1e-9 * left ? rest : 0.0;
  }
};

double run_phase(const OverlapPhase& phase, const OverlapRules& rules, double& background) {
  const bool share = phase.between_nodes == rules.background_between_nodes;
  Running compute{phase.compute.value, 0}, transfer{phase.transfer.value, 0}, behind{background, 0};
  double elapsed = 0;
  while (compute.left > 0 || transfer.left > 0) {
    const bool both = share && transfer.left > 0 && behind.left > 0;
    const double speed = (both ? 0.5 : 1.0) / (compute.left > 0 ? rules.transfer_slowdown : 1.0);
    compute.rate = transfer.left > 0 || behind.left > 0 ? 1.0 / rules.compute_slowdown : 1.0;
    transfer.rate = behind.rate = speed;
    const double time = std::min({compute.time_to_end(), transfer.time_to_end(), behind.time_to_end()});
    for (Running* running : {&compute, &transfer, &behind}) running->advance(time);
    elapsed += time;
  }
  background = behind.left;
  return elapsed;
}

}  // namespace

Seconds run_beside(const std::vector<OverlapPhase>& phases, const OverlapRules& rules, Seconds& background) {
  Seconds elapsed(0.0);
  for (const OverlapPhase& phase : phases) elapsed += Seconds(run_phase(phase, rules, background.value));
  return elapsed;
}

}  // namespace reckon
