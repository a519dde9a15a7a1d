// How far the gradients of a step with stored activations are from those of the same step with everything kept in
// compute precision (schema "reckon.gradients/1"). Filled by the runtime, printed by report; docs/agoq.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace reckon {

/// Normalized L2 errors ||g - g_kept|| / ||g_kept||.
struct GradientErrors {
  double all = 0;                                       // of all weights together
  std::map<std::string, double> by_group;               // weight group: norm, query, ... (see weight_group)
  std::map<std::string, std::vector<double>> by_layer;  // weight group -> error in each model layer
};

/// What storing one class of activations alone does.
struct StoredClassError {
  std::string activation_class, format;
  GradientErrors errors;
};

struct GradientCheck {
  std::int64_t step = 0;  // whose tokens were used, counted from 1
  GradientErrors plan;    // of the plan as it is
  std::vector<StoredClassError> classes;
};

/// "norm", "query", "key", "value", "projection", "gate", "up", "down", "embedding" or "head": what a weight of that
/// name (Hugging Face) belongs to.
std::string weight_group(const std::string& parameter);

}  // namespace reckon
