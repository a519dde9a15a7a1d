#include "report/run_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plan/errors.h"
#include "report/checked_json.h"
#include "report/compare_profiles.h"
#include "report/format_quantity.h"

namespace reckon {

namespace {

constexpr int kBarWidth = 16;

/// Mean |error| of the runs that have one; 0 if none has.
double mean_error(std::vector<PastRun>::const_iterator begin, std::vector<PastRun>::const_iterator end) {
  double sum = 0;
  int count = 0;
  for (auto run = begin; run != end; ++run) {
    if (!run->step_error) continue;
    sum += std::abs(*run->step_error);
    ++count;
  }
  return count > 0 ? sum / count : 0.0;
}

std::string error_text(const std::optional<double>& error) {
  return error ? signed_percent(*error) : "-";
}

Json error_json(const std::optional<double>& error) {
  return error ? Json(*error) : Json();
}

}  // namespace

PastRun past_run(const std::string& name, const StepProfile& predicted, const StepProfile& measured) {
  const ProfileComparison comparison = compare_profiles(predicted, std::nullopt, measured);
  PastRun run;
  run.name = name;
  run.model = measured.plan.model.name;
  run.world_size = measured.world_size;
  run.predicted = predicted.step.seconds;
  run.measured = measured.step.seconds;
  for (const ComparisonRow& row : comparison.rows) {
    if (row.quantity == "step.seconds") run.step_error = row.error;
    const bool peak = row.aspect == Aspect::total && row.quantity.ends_with(".peak_allocated");
    if (peak && row.error && std::abs(*row.error) >= std::abs(run.memory_error.value_or(0.0)))
      run.memory_error = row.error;
  }
  for (const WorstRow& worst : comparison.worst)
    if (worst.aspect == Aspect::time) run.to_blame = worst.quantity.substr(worst.quantity.find('.') + 1);
  return run;
}

RunHistory run_history(std::vector<PastRun> runs) {
  if (runs.size() < 2)
    throw ConfigError(fmt::format("a history needs two measured runs or more, found {}", runs.size()));
  const auto middle = runs.cbegin() + static_cast<std::ptrdiff_t>(runs.size() / 2);
  const double earlier = mean_error(runs.cbegin(), middle), later = mean_error(middle, runs.cend());
  return {std::move(runs), earlier, later};
}

std::string history_sentence(const RunHistory& history) {
  const std::size_t older = history.runs.size() / 2, newer = history.runs.size() - older;
  const auto off = [](std::size_t runs) { return runs == 1 ? "run is off by" : "runs are off by"; };
  return fmt::format("the newer {} {} {} in step time on average, the older {} by {}: the prediction {}", newer,
                     off(newer), percent(history.later_error, 2), older, percent(history.earlier_error, 2),
                     history.better() ? "gets better" : "does not get better");
}

std::string history_text(const RunHistory& history, const TextStyle& style) {
  Table table({"run, oldest first", "ranks", "predicted", "measured", "step", "memory", "to blame", ""},
              {true, false, false, false, false, false, true, true});
  double worst = 0;
  for (const PastRun& run : history.runs) worst = std::max(worst, std::abs(run.step_error.value_or(0.0)));
  for (const PastRun& run : history.runs)
    table.add({run.name, grouped(run.world_size), with_unit(run.predicted), with_unit(run.measured),
               error_text(run.step_error), error_text(run.memory_error), run.to_blame,
               worst > 0 ? bar(std::abs(run.step_error.value_or(0.0)) / worst, kBarWidth, style) : ""});
  return table.text(style) + "\n" + history_sentence(history) + "\n";
}

std::string history_json(const RunHistory& history) {
  Json runs = Json::array();
  for (const PastRun& run : history.runs)
    runs.push_back({{"name", run.name},
                    {"model", run.model},
                    {"world_size", run.world_size},
                    {"predicted_seconds", run.predicted.value},
                    {"measured_seconds", run.measured.value},
                    {"step_error", error_json(run.step_error)},
                    {"memory_error", error_json(run.memory_error)},
                    {"worst_component", run.to_blame}});
  const Json document = {
      {"schema", "reckon.history/1"},       {"runs", std::move(runs)},    {"earlier_error", history.earlier_error},
      {"later_error", history.later_error}, {"better", history.better()}, {"sentence", history_sentence(history)}};
  return document_text(document);
}

}  // namespace reckon
