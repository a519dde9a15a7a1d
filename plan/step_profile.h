// The one result record: what a plan needs and how long it takes, whether predicted, simulated or measured.
// Cost model, simulator and runtime fill it; report joins and prints it (schema "reckon.profile/1").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/budget_result.h"
#include "plan/plan.h"
#include "plan/units.h"

namespace reckon {

enum class ProfileSource { predicted, simulated, measured };

struct Verdict {
  bool fits = true;
  double probability = 1.0;
  std::int64_t worst_rank = 0;
  Bytes need, limit;
  std::optional<std::string> breaks;  // memory component that crosses the limit
  std::string nearest;                // overrides of the nearest plan that fits, empty if none was looked for
};

struct StepSummary {
  Seconds seconds, interval_low, interval_high;  // 80 % interval
  std::int64_t tokens = 0, useful_tokens = 0;
  double tokens_per_second_per_device = 0, useful_tokens_per_second_per_device = 0;
  Flops model_flops;
  double mfu = 0, hfu = 0;
  std::string flop_convention = "causal";
  double bubble_fraction = 0;
};

/// `seconds` is busy time on the slowest rank, `exposed_seconds` what the step would lose without it; the latter sum to
/// the step time.
struct TimeComponent {
  std::string component;  // "forward.qkv", "backward.attention", "optimizer", "gradient.all_reduce", "bubble"
  Seconds seconds, exposed_seconds;
  Seconds spread;  // measured: half the interquartile range over steps; predicted: half the interval
};

struct StageMemory {
  Bytes parameters, gradients, optimizer, activations, transient, communication;  // at the moment of the peak
  Bytes peak_allocated;
  Bytes allocator_slack, communicators, context;
  Bytes device_used;
};

struct StageProfile {
  std::int64_t stage = 0, layers = 0, recomputed_layers = 0;
  double in_flight = 0;  // whole-stage micro-batch equivalents at the peak
  std::vector<int> activation_bits;
  std::int64_t worst_rank = 0;
  StageMemory memory;
};

struct TrafficEntry {
  std::string group, collective, dtype;
  std::int64_t calls = 0;
  std::int64_t bytes_per_rank = 0;  // sent
};

struct PackingSummary {
  std::int64_t documents = 0, documents_cut = 0;  // of a step; cut: a row holds only a part
  double mean_square_length = 0;                  // E[l^2] / E[l], tokens: the length that governs attention's cost
  double row_imbalance = 1;                       // pairs of the heaviest row / mean
  double real_token_share = 1, sum_of_squares_share = 1;
  std::string placement = "contiguous";
  double imbalance = 1, kv_blocks_mean = 0, kv_blocks_max = 0;
};

struct StepProfile {
  ProfileSource source = ProfileSource::predicted;
  Plan plan;
  std::int64_t world_size = 1;
  std::int64_t parameters = 0, active_parameters = 0;
  Verdict verdict;
  StepSummary step;
  std::vector<TimeComponent> time;
  std::vector<StageProfile> stages;
  std::vector<TrafficEntry> traffic;
  PackingSummary packing;
  std::vector<std::string> assumptions;
  std::vector<std::string> warnings;
  std::optional<BudgetResult> budget;  // where activations.method optimal was solved
};

}  // namespace reckon
