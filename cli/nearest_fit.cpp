#include "cli/nearest_fit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cost_model/predict.h"
#include "plan/load_plan.h"
#include "sim/nearest_changes.h"

namespace reckon {

namespace {

std::optional<ChangedPlanResult> evaluate(const Plan& changed) {
  if (!check_plan(changed).empty()) return std::nullopt;
  const StepProfile profile = predict(resolve(changed));
  return ChangedPlanResult{profile.verdict.fits, profile.verdict.need, profile.step.seconds};
}

}  // namespace

void find_nearest_fit(const Plan& plan, StepProfile& profile) {
  if (profile.verdict.fits || !profile.verdict.nearest.empty()) return;
  const auto changes = nearest_changes(plan, evaluate);
  if (!changes.empty()) profile.verdict.nearest = fmt::format("{}", fmt::join(changes.front().overrides, " "));
}

}  // namespace reckon
