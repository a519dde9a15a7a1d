#include "cli/compare_plans.h"

#include "cost_model/predict.h"
#include "plan/changed_keys.h"
#include "plan/errors.h"
#include "plan/load_plan.h"

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

/// What changed in one key of the table; of a model all its parts, since it is taken over whole.
struct Change {
  const PlanKey* key;
  std::string path, first, second;
};

void append(std::string& text, const std::string& more) {
  text += (text.empty() ? "" : ", ") + more;
}

std::vector<Change> changes_between(const Plan& first, const Plan& second) {
  std::vector<Change> changes;
  for (const ChangedKey& changed : changed_keys(first, second)) {
    const PlanKey* key = &key_of(changed);
    if (changes.empty() || changes.back().key != key) changes.push_back({key, "", "", ""});
    append(changes.back().path, changed.key);
    append(changes.back().first, changed.first);
    append(changes.back().second, changed.second);
  }
  return changes;
}

class Comparison {
 public:
  Comparison(const Plan& first, const Plan& second)
      : first_(first), second_(second), from_(outcome_of(first)), to_(outcome_of(second)) {}

  PlanDifference difference() {
    std::vector<Change> illegal_alone;
    for (const Change& change : changes_between(first_, second_))
      if (!add_row({change}, "")) illegal_alone.push_back(change);
    if (!illegal_alone.empty()) {
      const char* note = illegal_alone.size() > 1 ? "each alone breaks a rule" : "";
      if (!add_row(illegal_alone, note)) add_unknown_rows(illegal_alone);
    }
    add_remainder();
    return {{"", from_.step, from_.memory, from_.fits}, {"", to_.step, to_.memory, to_.fits}, std::move(rows_)};
  }

 private:
  bool add_row(const std::vector<Change>& changes, const std::string& note) {
    Plan plan = first_;
    Change all{};
    for (const Change& change : changes) {
      take_over(*change.key, second_, plan);
      append(all.path, change.path);
      append(all.first, change.first);
      append(all.second, change.second);
    }
    const auto outcome = outcome_if_legal(plan, reason_);
    if (!outcome) return false;
    rows_.push_back(
        {all.path, all.first, all.second, outcome->step - from_.step, outcome->memory - from_.memory, note});
    return true;
  }

  void add_unknown_rows(const std::vector<Change>& changes) {
    for (const Change& change : changes)
      rows_.push_back({change.path, change.first, change.second, std::nullopt, std::nullopt,
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
