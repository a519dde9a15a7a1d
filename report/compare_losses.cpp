#include "report/compare_losses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "report/format_quantity.h"

namespace reckon {

namespace {

double mean_of_last(const std::vector<double>& values, std::int64_t count) {
  return std::accumulate(values.end() - count, values.end(), 0.0) / static_cast<double>(count);
}

}  // namespace

std::optional<LossComparison> compare_losses(const std::pair<std::string, std::string>& names,
                                             const std::vector<LoggedStep>& first,
                                             const std::vector<LoggedStep>& second) {
  std::map<std::int64_t, double> known;
  for (const LoggedStep& step : second) known[step.step] = step.loss;
  LossComparison losses;
  losses.names = names;
  for (const LoggedStep& step : first) {
    const auto found = known.find(step.step);
    if (found == known.end()) continue;
    const double difference = found->second / step.loss - 1;
    if (!losses.parts_at && found->second != step.loss) losses.parts_at = step.step;
    if (losses.steps.empty() || std::abs(difference) > std::abs(losses.largest_difference)) {
      losses.largest_difference = difference;
      losses.largest_at = step.step;
    }
    losses.steps.push_back(step.step);
    losses.first.push_back(step.loss);
    losses.second.push_back(found->second);
  }
  if (losses.steps.empty()) return std::nullopt;
  losses.final_steps = std::max<std::int64_t>(1, static_cast<std::int64_t>(losses.steps.size()) / 10);
  losses.first_final = mean_of_last(losses.first, losses.final_steps);
  losses.second_final = mean_of_last(losses.second, losses.final_steps);
  return losses;
}

std::string losses_text(const LossComparison& losses) {
  const std::string last =
      losses.final_steps == 1 ? "the last step" : fmt::format("the last {} steps", losses.final_steps);
  std::string text = fmt::format("loss over {} steps, mean of {}: {} {:.4f}, {} {:.4f} ({})\n", losses.steps.size(),
                                 last, losses.names.first, losses.first_final, losses.names.second, losses.second_final,
                                 signed_percent(losses.final_difference()));
  if (!losses.parts_at) return text + "the losses are equal to the bit\n";
  return text + fmt::format("the losses part at step {}; furthest at step {}: {}\n", *losses.parts_at,
                            losses.largest_at, signed_percent(losses.largest_difference));
}

}  // namespace reckon
