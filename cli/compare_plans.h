// What the keys in which two plans differ cost or save, each by a prediction of its own.
#pragma once

#include "plan/plan.h"
#include "report/plan_difference.h"

namespace reckon {

/// Both plans as loaded, not resolved, and legal. Keys whose change alone breaks a rule are tried together in one row;
/// what is left over stands in the last row, so that the rows add up.
PlanDifference compare_plans(const Plan& first, const Plan& second);

}  // namespace reckon
