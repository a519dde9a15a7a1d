// The rules between the values of a plan, in groups; check_plan runs them in this order. Private to it.
#pragma once

#include <string>
#include <vector>

#include "plan/errors.h"
#include "plan/plan.h"

namespace reckon {

/// The plan under check and the rules it breaks.
struct Rules {
  const Plan& plan;
  const ParallelSpec& parallel = plan.parallel;
  const ModelSpec& model = plan.model;
  std::vector<Diagnostic> found = {};

  void broken(std::string key, std::string message) {
    found.push_back({std::move(message), plan.source_file, 0, 0, std::move(key)});
  }
};

/// Types and ranges of single keys, for plans that were not read from a file.
void check_values(Rules& rules);
/// Upper bounds of what later code counts in 64 bits, in floating point so that they cannot overflow themselves.
void check_sizes(Rules& rules);
/// Ranks against nodes, rows against replicas, layers against stages, heads and widths against degrees.
void check_parallelism(Rules& rules);
/// Formats, lists by stage, gradients, optimizer, simulation.
void check_training(Rules& rules);

}  // namespace reckon
