#include "cli/commands/score.h"

#include <fmt/format.h>

#include "cli/find_configs.h"
#include "cli/parse_tolerance.h"
#include "cli/progress_line.h"
#include "cost_model/score.h"
#include "report/format_quantity.h"
#include "report/result_json.h"
#include "report/result_text.h"

namespace reckon {

namespace {

/// "a=b" -> a, b.
std::pair<std::string, std::string> split(const std::string& text, char separator, const char* option) {
  const auto at = text.find(separator);
  if (at == std::string::npos || at == 0)
    throw ConfigError(fmt::format("{} {}: `{}` is missing; see `reckon score --help`", option, text, separator));
  return {text.substr(0, at), text.substr(at + 1)};
}

ScoreOptions score_options(const ScoreCommand& options) {
  ScoreOptions result;
  result.group_by = options.group_by;
  for (const std::string& text : options.fill) result.fill.push_back(split(text, '=', "--fill"));
  for (const std::string& text : options.map) {
    const auto [column, change] = split(text, ':', "--map");
    const auto [before, after] = split(change, '=', "--map");
    result.map.emplace_back(column, before, after);
  }
  result.recompute = options.recompute == "none"   ? AssumedRecompute::none
                     : options.recompute == "full" ? AssumedRecompute::full
                                                   : AssumedRecompute::both;
  result.tflops = options.tflops == "megatron_hw"    ? TflopsConvention::megatron_hw
                  : options.tflops == "model_causal" ? TflopsConvention::model_causal
                  : options.tflops == "model_full"   ? TflopsConvention::model_full
                                                     : TflopsConvention::none;
  result.overrides = options.overrides;
  return result;
}

bool within(const ScoreResult& result, double tolerance, const Output& output) {
  bool all = true;
  for (const ScoreGroup& group : result.groups) {
    if (!group.step_time.mape || *group.step_time.mape <= tolerance) continue;
    output.note(fmt::format("beyond the tolerance: {} (time MAPE {})", group.group, percent(*group.step_time.mape)));
    all = false;
  }
  return all;
}

ScoreResult score_with_progress(const ScoreCommand& command) {
  ProgressLine line("scoring", "rows");
  ScoreOptions options = score_options(command);
  options.progress = [&](double share, std::int64_t rows) { line.show(share, rows); };
  return score(command.file, options, find_configs());
}

}  // namespace

ExitCode score_command(const ScoreCommand& options, const Output& output) {
  const bool judged = !options.tolerance.empty();
  const double tolerance = judged ? parse_share(options.tolerance, options.tolerance) : 0;
  const ScoreResult result = score_with_progress(options);
  output.result(output.json() ? score_json(result, options.rows) : score_text(result, options.rows, output.style()));
  return !judged || within(result, tolerance, output) ? ExitCode::success : ExitCode::disagreement;
}

}  // namespace reckon
