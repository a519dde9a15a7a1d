#include "cli/commands/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "cli/load_checked_plan.h"
#include "cost_model/estimate_op_times.h"
#include "cost_model/knob_steps.h"
#include "cost_model/memory.h"
#include "cost_model/plan_tensors.h"
#include "cost_model/predict.h"
#include "cost_model/single_changes.h"
#include "cost_model/smallest_plan.h"
#include "report/explanation_report.h"
#include "report/format_quantity.h"
#include "sim/explain.h"
#include "sim/simulate_step.h"

namespace reckon {

namespace {

using Texts = std::vector<std::string>;

bool is_override(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return false;
  return std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(equals), [](unsigned char letter) {
    return std::isalnum(letter) || letter == '.' || letter == '_' || letter == '-';
  });
}

Texts joined(Texts texts, const Texts& more) {
  texts.insert(texts.end(), more.begin(), more.end());
  return texts;
}

/// What the numbers of a pasted line say about this plan.
Texts remarks_on(const OutOfMemoryLine& line, const StepProfile& profile) {
  Texts remarks;
  Bytes peak{0};
  for (const StageProfile& stage : profile.stages) peak = std::max(peak, stage.memory.peak_allocated);
  const double share = line.allocated ? *line.allocated / peak : 0;  // 0: the line does not say
  const bool fragmented = line.cached && *line.cached > line.asked, at_peak = share > 0.9 && share <= 1.1;
  if (fragmented)
    remarks.push_back(
        fmt::format("The allocator held {} that were not in use, more than the {} asked for: fragmentation{}. "
                    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True usually ends it.",
                    with_unit(*line.cached), with_unit(line.asked),
                    at_peak ? " at the peak, where little room is left for it" : ", not need"));
  if (line.allocated)
    remarks.push_back(fmt::format(
        "{} were allocated; this plan's peak is predicted as {}: {}.", with_unit(*line.allocated), with_unit(peak),
        share > 1.1 ? "the run holds more than the plan says, so that some option of the plan did not take effect in it"
        : at_peak   ? "the run was at its peak"
                    : "the run had not reached its peak yet"));
  if (line.capacity) {
    const Bytes limit = profile.plan.hardware.device.memory;
    const double off = *line.capacity / limit - 1;
    if (std::abs(off) > 0.05)
      remarks.push_back(fmt::format("The device of the line has {}, that of the plan {}.", with_unit(*line.capacity),
                                    with_unit(limit)));
  }
  return remarks;
}

ExitCode explain_size(const std::string& text, const Plan& plan, const Output& output) {
  SizeExplanation explanation;
  explanation.line = read_out_of_memory_line(text);
  const Plan resolved = resolve(plan);
  explanation.matches = tensors_of_size(plan_tensors(resolved), explanation.line);
  explanation.remarks = remarks_on(explanation.line, predict(resolved));
  output.result(output.json() ? explanation_json(explanation) : explanation_text(explanation, output.style()));
  return ExitCode::success;
}

/// Of a plan that fits only the faster ones.
std::vector<PlanChange> useful_changes(const Plan& plan, const StepProfile& profile) {
  std::vector<PlanChange> changes = fitting_changes(plan);
  if (profile.verdict.fits)
    std::erase_if(changes, [&](const PlanChange& one) { return one.step >= profile.step.seconds * 0.999; });
  return changes;
}

ExitCode explain_plan(const ExplainCommand& options, const Texts& overrides, const Output& output) {
  const Plan plan = load_checked_plan(options.plan, overrides, find_configs());
  PlanExplanation explanation;
  const Plan resolved = resolve(plan);
  explanation.profile = predict(resolved);
  explanation.bound_by = bound_by(explanation.profile);
  const Simulation simulation = simulate_step(explanation.profile, estimate_op_times(resolved));
  for (const Saving& saving : explain(*simulation.step))
    if (saving.saved.value > 0) explanation.savings.push_back({saving.component, saving.saved});
  explanation.changes = useful_changes(plan, explanation.profile);
  explanation.devices_tried =
      options.most_devices > 0 ? options.most_devices : std::min<std::int64_t>(65536, 8 * plan.world_size());
  if (const auto smallest = smallest_plan(plan, explanation.devices_tried)) {
    explanation.smallest = smallest->change;
    explanation.smallest_devices = smallest->devices;
  }
  output.result(output.json() ? explanation_json(explanation) : explanation_text(explanation, output.style()));
  return explanation.profile.verdict.fits ? ExitCode::success : ExitCode::does_not_fit;
}

std::vector<DifferenceRow> difference_rows(const StepProfile& first, const StepProfile& second, double scale) {
  std::map<std::string, DifferenceRow> rows;
  for (const TimeComponent& part : first.time) rows[part.component].first += part.exposed_seconds;
  for (const TimeComponent& part : second.time) rows[part.component].second += part.exposed_seconds * scale;
  std::vector<DifferenceRow> list;
  for (auto& [component, row] : rows) {
    row.component = component;
    list.push_back(row);
  }
  std::stable_sort(list.begin(), list.end(), [](const DifferenceRow& a, const DifferenceRow& b) {
    return std::abs((a.second - a.first).value) > std::abs((b.second - b.first).value);
  });
  return list;
}

/// Overrides in front of the second plan are the first's, those behind it the second's; with one plan twice, so are
/// variants of it compared.
ExitCode explain_difference(const ExplainCommand& options, const std::string& second, const Texts& of_first,
                            const Texts& of_second, const Output& output) {
  const ConfigPaths paths = find_configs();
  const auto profile = [&](const std::string& name, const Texts& overrides) {
    return predict(resolve(load_checked_plan(name, overrides, paths)));
  };
  const auto called = [](const std::string& name, const Texts& overrides) {
    return overrides.empty() ? name : fmt::format("{} {}", name, fmt::join(overrides, " "));
  };
  DifferenceExplanation explanation{called(options.plan, of_first),
                                    called(second, of_second),
                                    profile(options.plan, of_first),
                                    profile(second, of_second),
                                    1,
                                    {},
                                    {}};
  if (explanation.second.step.tokens > 0 && explanation.first.step.tokens != explanation.second.step.tokens)
    explanation.scale =
        static_cast<double>(explanation.first.step.tokens) / static_cast<double>(explanation.second.step.tokens);
  explanation.rows = difference_rows(explanation.first, explanation.second, explanation.scale);
  explanation.keys = changed_keys(explanation.first.plan, explanation.second.plan);
  output.result(output.json() ? explanation_json(explanation) : explanation_text(explanation, output.style()));
  return ExitCode::success;
}

bool is_plan(const std::string& text) {
  try {
    find_plan(text, find_configs());
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

bool holds_digit(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char letter) { return std::isdigit(letter); });
}

}  // namespace

ExitCode explain_command(const ExplainCommand& options, const Output& output) {
  Texts before, after, words;
  for (const std::string& text : options.rest) {
    if (is_override(text)) (words.empty() ? before : after).push_back(text);
    else words.push_back(text);
  }
  if (words.empty()) return explain_plan(options, before, output);
  if (words.size() == 1 && is_plan(words.front()))
    return explain_difference(options, words.front(), before, after, output);
  const std::string line = fmt::format("{}", fmt::join(words, " "));
  if (words.size() == 1 && (!holds_digit(line) || line.ends_with(".yaml")))
    find_plan(words.front(), find_configs());  // says what is wrong with the name
  return explain_size(line, load_checked_plan(options.plan, joined(before, after), find_configs()), output);
}

}  // namespace reckon
