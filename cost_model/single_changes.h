// Plans one change away from a plan: what `plan`, `simulate` and `explain` offer for one that does not fit, and
// `explain` for one that could be faster.
#pragma once

#include <string>
#include <vector>

#include "plan/explanation.h"
#include "plan/plan.h"

namespace reckon {

/// One knob turned, with the keys that must follow it, as overrides: recomputation, micro-batch, ZeRO stage, a degree
/// against data, sequence parallelism, schedule, kernels, narrower activations. Devices and batch stay. Rules may
/// forbid some of them.
std::vector<std::vector<std::string>> single_changes(const Plan& plan);

/// Those that break no rule and fit, judged by the closed form: the fastest first, after them in the same order those
/// that change gradients (plan/lossy_change.h). `plan` is legal and not resolved, so that what is auto follows.
std::vector<PlanChange> fitting_changes(const Plan& plan);

/// The first of them as one text, "activations.recompute=full activations.recompute_layers=auto"; empty when none fits.
std::string nearest_fitting_change(const Plan& plan);

}  // namespace reckon
