#include "cost_model/overlap_walk.h"

#include <algorithm>
#include <array>
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

/// The transfer that is under way; null when all have ended.
Background* first_left(std::span<Background> background) {
  for (Background& one : background)
    if (one.left.value > 0) return &one;
  return nullptr;
}

double run_phase(const OverlapPhase& phase, const OverlapRules& rules, std::span<Background> background) {
  Running compute{phase.compute.value, 0}, transfer{phase.transfer.value, 0};
  double elapsed = 0;
  while (compute.left > 0 || transfer.left > 0) {
    Background* const beside = first_left(background);
    Running behind{beside ? beside->left.value : 0.0, 0};
    const bool both = transfer.left > 0 && beside && phase.between_nodes == beside->between_nodes;
    const double speed = (both ? 0.5 : 1.0) / (compute.left > 0 ? rules.transfer_slowdown : 1.0);
    compute.rate = transfer.left > 0 || behind.left > 0 ? 1.0 / rules.compute_slowdown : 1.0;
    transfer.rate = behind.rate = speed;
    const double time = std::min({compute.time_to_end(), transfer.time_to_end(), behind.time_to_end()});
    for (Running* running : {&compute, &transfer, &behind}) running->advance(time);
    if (beside) beside->left = Seconds(behind.left);
    elapsed += time;
  }
  return elapsed;
}

}  // namespace

Seconds run_beside(const std::vector<OverlapPhase>& phases, const OverlapRules& rules,
                   std::span<Background> background) {
  Seconds elapsed(0.0);
  for (const OverlapPhase& phase : phases) elapsed += Seconds(run_phase(phase, rules, background));
  return elapsed;
}

Seconds section_excess(const std::vector<OverlapPhase>& phases, Seconds alone, const OverlapRules& rules,
                       Seconds reduce, Seconds gather) {
  std::array<Background, 2> background = {Background{reduce, rules.reduce_between_nodes},
                                          Background{gather, rules.gather_between_nodes}};
  const Seconds beside = run_beside(phases, rules, background);
  return beside + background[0].left + background[1].left - alone;
}

}  // namespace reckon
