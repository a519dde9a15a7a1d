// How far a prediction may be off: 80 % intervals from the residuals of the op and collective fits. Derivation and the
// coverage on public runs: docs/accuracy.md.
#pragma once

#include <vector>

#include "plan/plan.h"
#include "plan/step_profile.h"

namespace reckon {

/// Standard deviation of log(measured / predicted step time). Errors of single ops average out over distinct ops; those
/// of the machine as a whole (clocks, software, a prior that does not hold there) do not.
double step_time_deviation(const Plan& plan, const std::vector<TimeComponent>& components);

/// Standard deviation of log(measured / predicted peak memory).
double memory_deviation(const Plan& plan);

/// Half width of an 80 % interval as a factor: exp(1.2816 * deviation).
double interval_factor(double deviation);
double memory_interval_factor(const Plan& plan);

/// Probability that a need with that deviation stays below the limit.
double fit_probability(Bytes need, Bytes limit, double deviation);

}  // namespace reckon
