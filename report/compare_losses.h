// The loss curves of two runs, step by step: where they part, how far apart they come, where they end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/read_metrics.h"

namespace reckon {

struct LossComparison {
  std::pair<std::string, std::string> names;
  std::vector<std::int64_t> steps;  // that both runs made, ascending
  std::vector<double> first, second;
  std::int64_t final_steps = 0;  // the last tenth, over which the final losses are means
  double first_final = 0, second_final = 0;
  double largest_difference = 0;  // (second - first) / first, signed, where its magnitude is largest
  std::int64_t largest_at = 0;
  std::optional<std::int64_t> parts_at;  // first step whose losses differ in any bit; empty: equal

  double final_difference() const { return second_final / first_final - 1; }
};

/// Empty when the runs have no step in common. A single step sees little text, so final losses are means.
std::optional<LossComparison> compare_losses(const std::pair<std::string, std::string>& names,
                                             const std::vector<LoggedStep>& first,
                                             const std::vector<LoggedStep>& second);

/// Two sentences.
std::string losses_text(const LossComparison& losses);

}  // namespace reckon
