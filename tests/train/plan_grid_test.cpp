// Every line of plan_grid.txt, executed on threads in FP32, against three expected values: one rank that computes the
// same (loss, gradients, weights after five steps), a second run (equal to the bit), and the prediction (peak bytes of
// every stage and category, calls and bytes of every collective).
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "cost_model/predict.h"
#include "plan/load_plan.h"
#include "runtime/train/input/executable.h"
#include "runtime/train/rank_report.h"
#include "tests/train/small_plan.h"

namespace reckon {
namespace {

using testing::on_ranks;

constexpr int kSteps = 5;

constexpr const char* kBasePlan = R"(
reckon: 1
model: {name: grid, layers: 4, hidden: 16, ffn_hidden: 24, heads: 4, kv_heads: 2, head_dim: 4, vocabulary: 37}
hardware:
  name: cores
  device: {name: core, memory: 1 GiB, memory_bandwidth: 10 GB/s, is_cpu: true, peak: {fp32: 50 GFLOP/s}}
  devices_per_node: 16
  intra_node: {bandwidth: 5 GB/s, latency: 5us}
  inter_node: {bandwidth: 5 GB/s, latency: 5us}
batch: {sequence_length: 12, micro_batch: 1, global_batch: 8}
precision: {compute: fp32}
train: {steps: 10}
)";

struct GridLine {
  std::string name;
  std::vector<std::string> keys;
};

void PrintTo(const GridLine& line, std::ostream* out) {
  *out << line.name;
  for (const std::string& key : line.keys) *out << " " << key;
}

std::vector<GridLine> grid_lines() {
  std::ifstream file(std::string(RECKON_SOURCE_DIR) + "/tests/train/plan_grid.txt");
  std::vector<GridLine> lines;
  for (std::string text; std::getline(file, text);) {
    std::istringstream words(text);
    GridLine line;
    if (!(words >> line.name) || line.name.starts_with('#')) continue;
    for (std::string key; words >> key;) line.keys.push_back(key);
    lines.push_back(line);
  }
  return lines;
}

/// Says how a step is executed, not what it computes.
bool is_about_execution(const std::string& key) {
  return key.starts_with("parallel.") || key.starts_with("hardware.") || key.starts_with("activations.") ||
         key.starts_with("gradients.") || key.starts_with("batch.micro_batch=") ||
         key.starts_with("documents.placement=");
}

/// Gradients or moments in fewer bits than one rank's.
bool is_rounded(const Plan& plan) {
  return plan.gradients.stored != NumberFormat::fp32 || plan.gradients.wire != NumberFormat::fp32 ||
         plan.optimizer.states != NumberFormat::fp32;
}

/// Blocks end where a rank's tensors end, so that other numbers are rounded than on one rank.
bool stores_in_bits(const Plan& plan) {
  return is_block_scaled(plan.activations.stored);
}

Plan plan_with(const std::vector<std::string>& keys) {
  Plan plan = parse_plan(kBasePlan, "the base plan", keys, {});
  if (const auto broken = check_plan(plan); !broken.empty()) throw std::invalid_argument(broken.front().message);
  require_executable(plan);
  return resolve(plan);
}

struct Outcome {
  std::vector<double> losses, norms;
  std::map<std::string, at::Tensor> gradients, weights;  // whole tensors; gradients of the first step
  StepProfile measured;
};

/// What the test copies is booked apart from what the run needs.
MemoryAccount& account_of_the_test() {
  static MemoryAccount& account = *new MemoryAccount;
  return account;
}

Outcome train(const Plan& plan) {
  Outcome outcome;
  testing::FlatBuffers gradients, weights;
  std::mutex mutex;
  on_ranks(plan, [&](RankTrainer& trainer, int rank, MemoryAccount& account, Communicator& world) {
    std::vector<StepTimes> times;
    for (GroupCalls* group : trainer.groups().all()) group->communicator().reset_traffic();
    for (int s = 0; s < kSteps; ++s) {
      trainer.timer().begin_step();
      StepResult step = trainer.forward_backward(s);
      if (s == 0) {
        const AccountScope scope(account_of_the_test());
        const std::lock_guard lock(mutex);
        testing::place_gradients(gradients, trainer);
      }
      trainer.update(s, step);
      times.push_back(trainer.timer().end_step());
      if (rank != 0) continue;
      outcome.losses.push_back(step.loss);
      outcome.norms.push_back(step.gradient_norm);
    }
    const StepProfile measured = measured_profile(
        plan, exchange_reports(world, rank_report(trainer, rank, account, times, kSteps)), {{1.0}, {1.0}});
    if (rank == 0) outcome.measured = measured;
    const AccountScope scope(account_of_the_test());
    const std::lock_guard lock(mutex);
    testing::place_weights(weights, trainer);
  });
  outcome.gradients = testing::whole_tensors(plan, gradients);
  outcome.weights = testing::whole_tensors(plan, weights);
  return outcome;
}

/// The same computation on one rank; lines that compute the same share it.
const Outcome& reference_of(const std::vector<std::string>& keys) {
  static std::map<std::vector<std::string>, Outcome> known;
  std::vector<std::string> computed;
  std::copy_if(keys.begin(), keys.end(), std::back_inserter(computed),
               [](const std::string& key) { return !is_about_execution(key); });
  std::sort(computed.begin(), computed.end());
  const auto found = known.find(computed);
  return found != known.end() ? found->second : known.emplace(computed, train(plan_with(computed))).first->second;
}

double largest(const at::Tensor& tensor) {
  return tensor.abs().max().item<double>();
}

double largest(const std::map<std::string, at::Tensor>& tensors) {
  double most = 0;
  for (const auto& [name, tensor] : tensors) most = std::max(most, largest(tensor));
  return most;
}

class PlanGrid : public ::testing::TestWithParam<GridLine> {
 protected:
  /// Of activations in int8, 1 / 254 of a block's largest: gradients move by a few parts in a hundred, losses not at
  /// all.
  void expect_near_one_rank(const Outcome& got) {
    const Outcome& expected = reference_of(GetParam().keys);
    EXPECT_NEAR(got.losses[0], expected.losses[0], 1e-5 * expected.losses[0]);
    for (const auto& [name, gradient] : expected.gradients)
      EXPECT_LT((got.gradients.at(name) - gradient).norm().item<double>(), 0.05 * gradient.norm().item<double>())
          << name;
  }

  Plan plan_ = plan_with(GetParam().keys);
};

// Sharded sums differ from whole ones by the order of FP32 additions only, and AdamW divides by the gradient's own
// size, so that the smallest gradients decide how far weights move apart.
TEST_P(PlanGrid, ComputesWhatOneRankComputesAndRepeatsToTheBit) {
  const Outcome got = train(plan_), again = train(plan_);
  EXPECT_EQ(got.losses, again.losses);
  EXPECT_EQ(got.norms, again.norms);
  for (const auto& [name, gradient] : got.gradients) EXPECT_TRUE(at::equal(gradient, again.gradients.at(name))) << name;
  for (const auto& [name, weight] : got.weights) EXPECT_TRUE(at::equal(weight, again.weights.at(name))) << name;

  if (is_rounded(plan_)) return;  // gradient_formats_test.cpp
  if (stores_in_bits(plan_)) return expect_near_one_rank(got);
  const Outcome& expected = reference_of(GetParam().keys);
  for (std::size_t step = 0; step < kSteps; ++step) {
    EXPECT_NEAR(got.losses[step], expected.losses[step], 1e-5 * expected.losses[step]) << "step " << step;
    EXPECT_NEAR(got.norms[step], expected.norms[step], 1e-4 * expected.norms[step]) << "step " << step;
  }
  ASSERT_EQ(got.gradients.size(), expected.gradients.size());
  // A key bias shifts all scores of a query alike, which the softmax takes back: its gradient is rounding and nothing
  // else, and so is what SGD makes of it.
  const double rounding = 0x1p-24 * largest(expected.gradients);
  const double rounding_of_weights = 0x1p-24 * largest(expected.weights);
  for (const auto& [name, gradient] : expected.gradients)
    EXPECT_LT(largest(got.gradients.at(name) - gradient), std::max(1e-5 * largest(gradient), rounding)) << name;
  ASSERT_EQ(got.weights.size(), expected.weights.size());
  for (const auto& [name, weight] : expected.weights)
    EXPECT_LT(largest(got.weights.at(name) - weight), std::max(1e-4 * largest(weight), rounding_of_weights)) << name;
}

TEST_P(PlanGrid, RecomputesToTheBit) {
  std::vector<std::string> keys = GetParam().keys;
  const auto is_about_recomputing = [](const std::string& key) { return key.starts_with("activations.recompute"); };
  if (std::none_of(keys.begin(), keys.end(), is_about_recomputing)) return;  // nothing is recomputed
  std::erase_if(keys, is_about_recomputing);
  const Outcome recomputed = train(plan_), kept = train(plan_with(keys));
  EXPECT_GT(recomputed.measured.stages[0].recomputed_layers, 0);
  EXPECT_EQ(recomputed.losses, kept.losses);
  for (const auto& [name, gradient] : kept.gradients)
    EXPECT_TRUE(at::equal(gradient, recomputed.gradients.at(name))) << name;
  for (const auto& [name, weight] : kept.weights) EXPECT_TRUE(at::equal(weight, recomputed.weights.at(name))) << name;
}

TEST_P(PlanGrid, NeedsThePredictedBytesOfEveryStageAndCategory) {
  const StepProfile measured = train(plan_).measured, predicted = predict(plan_);
  ASSERT_EQ(measured.stages.size(), predicted.stages.size());
  for (std::size_t stage = 0; stage < measured.stages.size(); ++stage) {
    const StageMemory &m = measured.stages[stage].memory, &p = predicted.stages[stage].memory;
    const auto expect_equal = [stage](const char* category, Bytes counted, Bytes expected) {
      EXPECT_EQ(counted.value, expected.value) << category << " of stage " << stage;
    };
    EXPECT_EQ(measured.stages[stage].activation_bits, predicted.stages[stage].activation_bits) << "stage " << stage;
    EXPECT_EQ(measured.stages[stage].recomputed_layers, predicted.stages[stage].recomputed_layers) << "stage " << stage;
    if (is_rounded(plan_)) {  // the peak lies inside a layer here, where the walk is a few hundred bytes too high
      expect_equal("parameters", m.parameters, p.parameters);
      expect_equal("gradients", m.gradients, p.gradients);
      expect_equal("optimizer states", m.optimizer, p.optimizer);
      expect_equal("communication buffers", m.communication, p.communication);
      const auto peak = static_cast<double>(p.peak_allocated.value);
      EXPECT_NEAR(static_cast<double>(m.peak_allocated.value), peak, 0.01 * peak) << "stage " << stage;
      continue;
    }
    expect_equal("parameters", m.parameters, p.parameters);
    expect_equal("gradients", m.gradients, p.gradients);
    expect_equal("optimizer states", m.optimizer, p.optimizer);
    expect_equal("activations", m.activations, p.activations);
    expect_equal("transients", m.transient, p.transient);
    expect_equal("communication buffers", m.communication, p.communication);
    expect_equal("peak", m.peak_allocated, p.peak_allocated);
    EXPECT_EQ(measured.stages[stage].in_flight, predicted.stages[stage].in_flight) << "stage " << stage;
  }
}

using TrafficTable = std::map<std::tuple<std::string, std::string, std::string>, std::pair<std::int64_t, std::int64_t>>;

TrafficTable table_of(const std::vector<TrafficEntry>& entries) {
  TrafficTable table;
  for (const TrafficEntry& entry : entries)
    table[{entry.group, entry.collective, entry.dtype}] = {entry.calls, entry.bytes_per_rank};
  return table;
}

std::string text_of(const TrafficTable& table) {
  std::ostringstream text;
  for (const auto& [key, amount] : table)
    text << "\n  " << std::get<0>(key) << " " << std::get<1>(key) << " " << std::get<2>(key) << ": " << amount.first
         << " calls, " << amount.second << " bytes";
  return text.str();
}

TEST_P(PlanGrid, SendsThePredictedCallsAndBytes) {
  const TrafficTable measured = table_of(train(plan_).measured.traffic), predicted = table_of(predict(plan_).traffic);
  EXPECT_TRUE(measured == predicted) << "measured" << text_of(measured) << "\npredicted" << text_of(predicted);
}

INSTANTIATE_TEST_SUITE_P(Plans, PlanGrid, ::testing::ValuesIn(grid_lines()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace reckon
