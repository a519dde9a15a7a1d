// Joins profiles of one plan component by component: prediction, simulation, measurement, and the signed error.
// A component that only one side has is a row with a gap, never dropped, so that the parts add up on every side.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/step_profile.h"
#include "report/compare_losses.h"

namespace reckon {

/// What a row is about. Components of `time` sum to the step time, those of `memory` to the peak of their stage.
enum class Aspect { total, time, memory, traffic };
enum class Unit { seconds, bytes, calls, rate, share };

std::string_view name_of(Aspect aspect);
std::string_view name_of(Unit unit);

struct ComparisonRow {
  /// "step.seconds", "time.forward.qkv", "memory.stage0.gradients", "traffic.tensor.all_gather.bf16.calls".
  std::string quantity;
  Aspect aspect = Aspect::total;
  Unit unit = Unit::seconds;
  std::optional<double> predicted, simulated, measured;  // in the unit; empty = this side has no such component
  std::optional<double> spread;                          // of the measured value: half its interquartile range
  std::optional<double> error;                           // (predicted - measured) / measured; empty where undefined
  std::optional<double> blame;  // (predicted - measured) / measured total; components' blames sum to the total's error
};

/// The row of an aspect with the largest |error|, and the component with the largest |blame|.
struct WorstRow {
  Aspect aspect = Aspect::total;
  std::string quantity;
  double error = 0;
};

struct ProfileComparison {
  std::vector<std::string> columns;  // what stands under predicted, simulated and measured; empty text = nothing
  std::vector<ComparisonRow> rows;
  std::vector<WorstRow> worst;  // by aspect
  std::vector<std::string> remarks;
  std::optional<LossComparison> losses;  // of two runs
};

/// Compares against `measured`; `simulated` may be absent. Where nothing was measured, the last profile given stands
/// as the reference. Throws ConfigError when the profiles are of different models or world sizes.
ProfileComparison compare_profiles(const StepProfile& predicted, const std::optional<StepProfile>& simulated,
                                   const StepProfile& measured);

/// A limit on |error|. Empty quantity: the totals (step time and peak memory of every stage); else every row whose
/// quantity is or starts with it ("memory", "time.forward", "memory.stage0.parameters").
struct Tolerance {
  std::string quantity;
  double limit = 0;
};

/// Rows beyond a tolerance. A row that lacks a side counts as beyond when its quantity was asked for. Throws
/// ConfigError when a tolerance names no row.
std::vector<ComparisonRow> rows_beyond(const ProfileComparison& comparison, const std::vector<Tolerance>& tolerances);

/// Schema "reckon.comparison/1".
std::string comparison_json(const ProfileComparison& comparison);

}  // namespace reckon
