// Published tables beside predictions (schema "reckon.reproduction/1"). Filled by cost_model, printed by report.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace reckon {

/// A constant that was fitted, and the rows it was fitted on; without rows it was assumed.
struct FittedConstant {
  std::string constant;  // what it is, with its unit
  double value = 0;
  std::vector<std::string> rows;
};

/// One row of a published table. Quantities are named with their unit: "memory_gib", "tokens_per_second".
struct ReproducedRow {
  std::string system;                       // row label of the table, e.g. "Megatron recompute, 16k"
  std::map<std::string, double> published;  // as printed
  std::map<std::string, double> predicted;
  std::map<std::string, double> error;  // (predicted - published) / published
  bool fitted = false;                  // a constant was fitted on this row
};

struct ReproductionResult {
  std::string paper;
  std::vector<FittedConstant> fitted;
  std::vector<ReproducedRow> rows;
  std::map<std::string, double> summary;  // "memory_mape", "memory_worst", ... over rows that were not fitted
};

}  // namespace reckon
