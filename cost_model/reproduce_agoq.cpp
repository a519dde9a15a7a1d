// Table 2 of AGoQ (arXiv 2605.00539). Recomputed layers follow from memory: plain 1F1B, the paper's own count of what a
// layer keeps (28U in the Megatron stack, 7.75U in AGoQ), and one constant for everything else. Times follow from the
// plan's op times with two fitted factors.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cost_model/csv_table.h"
#include "cost_model/estimate_op_times.h"
#include "cost_model/predict.h"
#include "cost_model/reproduce.h"
#include "cost_model/scaled_times.h"
#include "cost_model/step_time.h"
#include "plan/activation_accounting.h"
#include "plan/errors.h"
#include "plan/pipeline_schedule.h"
#include "plan/stage_sections.h"

namespace reckon {

namespace {

struct PaperRow {
  std::string system;
  std::int64_t length = 0;  // K tokens
  std::int64_t recomputed = 0;
  double seconds = 0;

  std::string label() const { return fmt::format("{} {}K", system, length); }
};

std::vector<PaperRow> read_rows(const ConfigPaths& paths) {
  const std::filesystem::path file = paths.configs / "papers" / "agoq_llama2_13b.csv";
  const CsvTable table = CsvTable::read(file);
  std::vector<PaperRow> rows;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const auto length = table.count(i, "sequence_length_k"), layers = table.count(i, "recomputed_layers");
    const auto time = table.number(i, "iteration_time_ms");
    if (!length || !layers || !time) throw ConfigError(fmt::format("{}: row {} is incomplete", file.string(), i + 1));
    rows.push_back({table.cell(i, "method"), *length, *layers, *time * 1e-3});
  }
  return rows;
}

// ---- memory
// ----------------------------------------------------------------------------------------------------------

constexpr double kFfnRatioOfPaper = 4.0;  // the paper counts 28U, a stack of f = 4h, also for LLaMA2-13B
constexpr double kWorkspace = 4e9;        // fitted: see reproduce_agoq

/// Bytes of state per weight: bf16 weight, fp32 gradient, fp32 master and moments; ZeRO-1 divides the last 12 by DP;
/// AGoQ keeps 8-bit gradients and moments.
double state_bytes_per_weight(const std::string& system, const Plan& plan) {
  if (system == "AGoQ") return 2.0 + 1.0 + 4.0 + 2.0;
  if (system == "ZeRO-1") return 6.0 + 12.0 / static_cast<double>(plan.parallel.data);
  return 18.0;
}

/// Fewest recomputed layers with which the first stage fits. A recomputed layer keeps its whole input: 1U that tensor
/// parallelism does not divide.
std::int64_t recomputed_layers(const Plan& plan, const std::string& system) {
  const WeightElements weights = stage_weights(section_weights(plan), stage_sections(plan, 0));
  const double tokens = static_cast<double>(plan.batch.micro_batch * plan.batch.sequence_length);
  const double unit = 2.0 * tokens * static_cast<double>(plan.model.hidden);
  const ActivationStack stack = system == "AGoQ" ? ActivationStack::agoq : ActivationStack::megatron_unfused;
  const double kept =
      unit * layer_units(stack, kFfnRatioOfPaper, 1.0).sum() / static_cast<double>(plan.parallel.tensor);
  const double in_flight =
      peak_in_flight(plan.parallel.schedule, static_cast<int>(plan.parallel.pipeline), 0,
                     static_cast<int>(plan.parallel.chunks), static_cast<int>(plan.micro_batches()));
  const double states = static_cast<double>(weights.total()) * state_bytes_per_weight(system, plan);
  const std::int64_t layers = layers_per_virtual_stage(plan).front();
  const auto limit = static_cast<double>(plan.hardware.device.memory.value);
  for (std::int64_t recomputed = 0; recomputed < layers; ++recomputed) {
    const double activations =
        in_flight * (static_cast<double>(layers - recomputed) * kept + static_cast<double>(recomputed) * unit);
    if (states + activations + kWorkspace <= limit) return recomputed;
  }
  return layers;
}

// ---- time
// ------------------------------------------------------------------------------------------------------------

Plan plan_of(const PaperRow& row, const ConfigPaths& paths) {
  static const std::map<std::string, std::string> files{
      {"AGoQ", "agoq-agoq-32k"}, {"ZeRO-1", "agoq-zero1-32k"}, {"Megatron-LM", "agoq-megatron-32k"}};
  const auto found = files.find(row.system);
  if (found == files.end()) throw ConfigError("the table has an unknown system '" + row.system + "'");
  const std::vector<std::string> overrides{fmt::format("batch.sequence_length={}", row.length * 1024)};
  return load_plan(paths.configs / "plans" / (found->second + ".yaml"), overrides, paths);
}

Plan with_recomputed_layers(Plan plan, std::int64_t layers) {
  plan.activations.recompute = layers > 0 ? Recompute::full : Recompute::none;
  plan.activations.recompute_layers.assign(static_cast<std::size_t>(plan.parallel.pipeline), layers);
  return resolve(plan);
}

struct TimedPlan {
  Plan plan;
  OpTimes times;

  double seconds(TimeFactors factors) const { return step_time(plan, scaled(times, factors)).total.value; }
};

TimedPlan timed(const PaperRow& row, std::int64_t recomputed, const ConfigPaths& paths) {
  Plan plan = with_recomputed_layers(plan_of(row, paths), recomputed);
  OpTimes times = estimate_op_times(plan);
  return {std::move(plan), std::move(times)};
}

/// The two factors that meet two measured times: Newton's method, started at the hardware file's constants.
TimeFactors fit_factors(const TimedPlan& first, double first_seconds, const TimedPlan& second, double second_seconds) {
  TimeFactors factors;
  for (int iteration = 0; iteration < 20; ++iteration) {
    const double step = 1e-4;
    const double miss_1 = first.seconds(factors) - first_seconds, miss_2 = second.seconds(factors) - second_seconds;
    if (std::abs(miss_1) < 1e-9 * first_seconds && std::abs(miss_2) < 1e-9 * second_seconds) break;
    const TimeFactors more_linear{factors.linear + step, factors.attention};
    const TimeFactors more_attention{factors.linear, factors.attention + step};
    const double a = (first.seconds(more_linear) - first_seconds - miss_1) / step;
    const double b = (first.seconds(more_attention) - first_seconds - miss_1) / step;
    const double c = (second.seconds(more_linear) - second_seconds - miss_2) / step;
    const double d = (second.seconds(more_attention) - second_seconds - miss_2) / step;
    const double determinant = a * d - b * c;
    if (determinant == 0.0) throw RunError("the two rows do not identify the two time factors");
    factors.linear -= (miss_1 * d - miss_2 * b) / determinant;
    factors.attention -= (miss_2 * a - miss_1 * c) / determinant;
  }
  if (factors.linear <= 0.0 || factors.attention <= 0.0)
    throw RunError("the fitted time factors are not positive: the hardware file does not describe the cluster");
  return factors;
}

const PaperRow& row_named(const std::vector<PaperRow>& rows, const std::string& label) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const PaperRow& row) { return row.label() == label; });
  if (found == rows.end()) throw ConfigError("the table has no row '" + label + "'");
  return *found;
}

void add_summary(ReproductionResult& result) {
  double layers = 0.0, layers_worst = 0.0, sum = 0.0, worst = 0.0, predicted_rows = 0.0;
  for (const ReproducedRow& row : result.rows) {
    const double miss = std::abs(row.predicted.at("recomputed_layers") - row.published.at("recomputed_layers"));
    layers += miss;
    layers_worst = std::max(layers_worst, miss);
    if (row.fitted) continue;
    const double error = std::abs(row.error.at("iteration_seconds"));
    sum += error;
    worst = std::max(worst, error);
    predicted_rows += 1.0;
  }
  result.summary["recomputed_layers_error_sum"] = layers;
  result.summary["recomputed_layers_error_worst"] = layers_worst;
  result.summary["iteration_seconds_mape"] = sum / predicted_rows;
  result.summary["iteration_seconds_worst"] = worst;
}

}  // namespace

ReproductionResult reproduce_agoq(const ConfigPaths& paths) {
  const std::vector<PaperRow> rows = read_rows(paths);
  const std::vector<std::string> fitted{"Megatron-LM 64K", "Megatron-LM 72K"};
  const PaperRow &first = row_named(rows, fitted[0]), &second = row_named(rows, fitted[1]);
  const TimeFactors factors = fit_factors(timed(first, first.recomputed, paths), first.seconds,
                                          timed(second, second.recomputed, paths), second.seconds);
  ReproductionResult result;
  result.paper = "AGoQ, arXiv 2605.00539, table 2: LLaMA2-13B, 64 A6000, PP 4, TP 8, DP 2";
  result.fitted = {
      {"factor on the time of products, memory-bound ops, collectives and messages", factors.linear, fitted},
      {"factor on the time of attention", factors.attention, fitted},
      {"memory of everything but states and kept activations, bytes",
       kWorkspace,
       {"the recomputed layers of the 14 Megatron-LM and ZeRO-1 rows"}}};
  for (const PaperRow& row : rows) {
    ReproducedRow entry;
    entry.system = row.label();
    entry.fitted = std::find(fitted.begin(), fitted.end(), row.label()) != fitted.end();
    const std::int64_t recomputed = recomputed_layers(plan_of(row, paths), row.system);
    const double seconds = timed(row, recomputed, paths).seconds(factors);
    entry.published = {{"recomputed_layers", static_cast<double>(row.recomputed)}, {"iteration_seconds", row.seconds}};
    entry.predicted = {{"recomputed_layers", static_cast<double>(recomputed)}, {"iteration_seconds", seconds}};
    entry.error = {{"iteration_seconds", seconds / row.seconds - 1.0}};
    result.rows.push_back(std::move(entry));
  }
  add_summary(result);
  return result;
}

}  // namespace reckon
