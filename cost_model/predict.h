// The closed-form prediction of a whole step: memory by component and stage, time by component, throughput, verdict.
#pragma once

#include "plan/plan.h"
#include "plan/step_profile.h"

namespace reckon {

/// Fills every value that a plan leaves to the tool: layers_per_stage, recompute_layers, bits_by_stage, zero_group,
/// placement, nodes; with activations.method optimal the policies themselves (budget_solver.h). Resolving twice changes
/// nothing. The plan must satisfy check_plan.
Plan resolve(const Plan& plan);

/// Prediction for a resolved plan; a plan that does not fit is predicted all the same, with its verdict saying so.
/// Throws RuleError when the device cannot compute in the plan's precision.
StepProfile predict(const Plan& resolved);

}  // namespace reckon
