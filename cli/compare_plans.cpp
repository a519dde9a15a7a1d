#include "cli/compare_plans.h"

#include <fmt/format.h>

#include <algorithm>

#include "cost_model/predict.h"
#include "plan/errors.h"
#include "plan/load_plan.h"
#include "plan/plan_schema.h"

namespace reckon {

namespace {

struct Outcome {
  Seconds step;
  Bytes memory;
  bool fits = false;
};

Outcome outcome_of(const Plan& plan) {
  const StepProfile profile = predict(resolve(plan));
  return {profile.step.seconds, profile.verdict.need, profile.verdict.fits};
}

/// Nothing for a plan that breaks a rule; `reason` says which.
std::optional<Outcome> outcome_if_legal(const Plan& plan, std::string& reason) {
  const auto broken = check_plan(plan);
  if (!broken.empty()) {
    reason = broken.front().message;
    return std::nullopt;
  }
  try {
    return outcome_of(plan);
  } catch (const RuleError& error) {  // found by the prediction: a precision that the device does not have
    reason = error.diagnostics().front().message;
    return std::nullopt;
  }
}

std::string value_of(const PlanKey& key, const Plan& plan) {
  if (key.path == "model") return plan.model.name;
  if (key.path == "hardware") return plan.hardware.name;
  std::string text = write_yaml(key.get(plan));
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

void take_over(const PlanKey& key, const Plan& from, Plan& to) {
  if (key.path == "model") {
    to.model = from.model;
  } else if (key.path == "hardware") {
    to.hardware = from.hardware;
  } else {
    if (key.clear) key.clear(to);
    key.set(key.get(from), to);
  }
}

bool differs(const PlanKey& key, const Plan& first, const Plan& second) {
  return write_yaml(key.get(first)) != write_yaml(key.get(second));
}

std::string joined(const std::vector<const PlanKey*>& keys, const auto& text_of) {
  std::string text;
  for (const PlanKey* key : keys) text += (text.empty() ? "" : ", ") + text_of(*key);
  return text;
}

class Comparison {
 public:
  Comparison(const Plan& first, const Plan& second)
      : first_(first), second_(second), from_(outcome_of(first)), to_(outcome_of(second)) {}

  PlanDifference difference() {
    std::vector<const PlanKey*> illegal_alone;
    for (const PlanKey& key : plan_keys()) {
      if (!differs(key, first_, second_)) continue;
      if (!add_row({&key}, "")) illegal_alone.push_back(&key);
    }
    if (!illegal_alone.empty()) {
      const char* note = illegal_alone.size() > 1 ? "each alone breaks a rule" : "";
      if (!add_row(illegal_alone, note)) add_unknown_rows(illegal_alone);
    }
    add_remainder();
    return {{"", from_.step, from_.memory, from_.fits}, {"", to_.step, to_.memory, to_.fits}, std::move(rows_)};
  }

 private:
  bool add_row(const std::vector<const PlanKey*>& keys, const std::string& note) {
    Plan plan = first_;
    for (const PlanKey* key : keys) take_over(*key, second_, plan);
    const auto outcome = outcome_if_legal(plan, reason_);
    if (!outcome) return false;
    const auto from = [&](const PlanKey& key) { return value_of(key, first_); };
    const auto to = [&](const PlanKey& key) { return value_of(key, second_); };
    rows_.push_back({joined(keys, [](const PlanKey& key) { return key.path; }), joined(keys, from), joined(keys, to),
                     outcome->step - from_.step, outcome->memory - from_.memory, note});
    return true;
  }

  void add_unknown_rows(const std::vector<const PlanKey*>& keys) {
    for (const PlanKey* key : keys)
      rows_.push_back({key->path, value_of(*key, first_), value_of(*key, second_), std::nullopt, std::nullopt,
                       "only legal with others: counted below"});
  }

  /// What is missing to the second plan.
  void add_remainder() {
    Seconds step = to_.step - from_.step;
    Bytes memory = to_.memory - from_.memory;
    for (const KeyEffect& row : rows_) {
      if (row.step) step -= *row.step;
      if (row.memory) memory -= *row.memory;
    }
    if (rows_.size() == 1 && rows_.front().step) return;  // that row is the whole difference
    if (rows_.empty()) return;
    rows_.push_back({"together, beyond that", "", "", step, memory, ""});
  }

  const Plan& first_;
  const Plan& second_;
  Outcome from_, to_;
  std::string reason_;
  std::vector<KeyEffect> rows_;
};

}  // namespace

PlanDifference compare_plans(const Plan& first, const Plan& second) {
  return Comparison(first, second).difference();
}

}  // namespace reckon
