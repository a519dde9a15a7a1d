// `reckon score`: predictions against a table of measured runs. Rules: docs/score.md.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cost_model/score_row.h"
#include "plan/load_plan.h"
#include "plan/score_result.h"

namespace reckon {

enum class TflopsConvention { none, megatron_hw, model_causal, model_full };
enum class AssumedRecompute { both, none, full };

struct ScoreOptions {
  std::string group_by;                                                // empty: "bar" if there is one, else source_id
  std::vector<std::pair<std::string, std::string>> fill;               // column, value
  std::vector<std::tuple<std::string, std::string, std::string>> map;  // column, old value, new value
  AssumedRecompute recompute = AssumedRecompute::both;                 // of rows that do not say
  TflopsConvention tflops = TflopsConvention::none;
  std::vector<std::string> overrides;                             // "key=value" for every plan
  std::function<void(double share, std::int64_t rows)> progress;  // called with the share and the rows that are done
};

/// Models, hardware and sources found under `paths`.
ScoreLibrary score_library(const ConfigPaths& paths);

/// Throws ConfigError for an unreadable file or when not one row could be scored.
ScoreResult score(const std::filesystem::path& file, const ScoreOptions& options, const ConfigPaths& paths);
ScoreResult score(CsvTable table, const std::string& file, const ScoreOptions& options, const ScoreLibrary& library);

}  // namespace reckon
