// One row of measured runs -> a plan, or the reason why it cannot be one. Rules: docs/score.md.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cost_model/csv_table.h"
#include "cost_model/score_sources.h"
#include "plan/plan.h"

namespace reckon {

/// Models and hardware that rows may name. Empty functions' results mean: unknown.
struct ScoreLibrary {
  std::function<std::optional<ModelSpec>(const std::string& model)> model;
  std::function<std::optional<HardwareSpec>(const std::string& gpu, std::optional<double> memory_gib)> hardware;
  std::function<HardwareSpec(const std::string& name)> hardware_named;  // a source's cluster
  std::map<std::string, ScoreSource> sources;
  std::vector<std::string> overrides;                                                // "key=value" for every plan
  std::function<void(Plan&, const std::string& key, const std::string& value)> set;  // one override
};

struct RowPlan {
  std::string skipped;  // reason, empty = there is a plan
  std::string message;  // of an unsupported plan
  Plan plan;
  std::vector<std::string> assumptions;                        // columns whose default was used
  bool unknown_recompute = false;                              // plan.activations.recompute is still to be chosen
  bool batch_is_assumed = false;                               // step time is not comparable
  std::vector<std::pair<std::string, std::string>> described;  // dotted key -> value, of what the row decided
};

/// `row` counts from 0. Recomputation is set when the row or its source states it.
RowPlan row_plan(const CsvTable& table, std::size_t row, const ScoreLibrary& library);

}  // namespace reckon
