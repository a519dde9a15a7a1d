// A run's measured profile against its prediction where both must be equal: the documents of the timed steps, their
// tokens, and what ranks send because of them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "cost_model/predict.h"
#include "runtime/train/train_run.h"
#include "tests/train/small_plan.h"

namespace reckon {
namespace {

struct Case {
  std::string name;
  Rows rows = Rows::packed;
  AttentionScope attention = AttentionScope::per_document;
  std::int64_t ulysses = 1, ring = 1, data = 1, pipeline = 1;
  Placement placement = Placement::automatic;
  NumberFormat compute = NumberFormat::fp32;
  Recompute recompute = Recompute::none;
  std::int64_t steps = 7;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

/// Lengths that differ much from step to step.
std::string lengths_file() {
  const auto file = std::filesystem::path(::testing::TempDir()) / "reckon_document_profile.lengths";
  std::ofstream(file) << "5\n9\n3\n31\n1\n7\n24\n2\n11\n6\n17\n";
  return file.string();
}

Plan plan_of(const Case& c) {
  Plan plan = testing::small_plan();
  plan.hardware.device.memory = Bytes(std::int64_t{1} << 30);
  plan.hardware.device.memory_bandwidth = BytesPerSecond(1e10);
  plan.hardware.device.peak = {{NumberFormat::fp32, FlopsPerSecond(5e10)}, {NumberFormat::bf16, FlopsPerSecond(1e11)}};
  plan.hardware.devices_per_node = 16;
  plan.hardware.intra_node = plan.hardware.inter_node = {BytesPerSecond(5e9), Seconds(5e-6), false};
  plan.batch = {24, 1, 4};
  plan.parallel.ulysses = c.ulysses;
  plan.parallel.ring = c.ring;
  plan.parallel.data = c.data;
  plan.parallel.pipeline = c.pipeline;
  plan.documents.source = lengths_file();
  plan.documents.rows = c.rows;
  plan.documents.attention = c.attention;
  plan.documents.placement = c.placement;
  plan.precision.compute = plan.activations.stored = c.compute;
  plan.activations.recompute = c.recompute;
  plan.activations.recompute_layers = {1};
  plan.train.steps = c.steps;
  plan.train.warmup = 2;
  return resolve(plan);
}

StepProfile measure(const Plan& plan) {
  const TokenStream tokens(plan);
  StepProfile measured;
  std::mutex mutex;
  run_ranks_as_threads(static_cast<int>(plan.world_size()), {}, [&](Communicator& world) {
    TrainResult result = train(plan, world, tokens, {});
    const std::lock_guard lock(mutex);
    if (world.rank() == 0) measured = std::move(result.profile);
  });
  return measured;
}

using Table = std::map<std::tuple<std::string, std::string, std::string>, std::pair<std::int64_t, std::int64_t>>;

Table table_of(const std::vector<TrafficEntry>& entries) {
  Table table;
  for (const TrafficEntry& entry : entries)
    table[{entry.group, entry.collective, entry.dtype}] = {entry.calls, entry.bytes_per_rank};
  return table;
}

class DocumentProfile : public ::testing::TestWithParam<Case> {};

TEST_P(DocumentProfile, IsPredictedForTheRowsOfTheTimedSteps) {
  const Plan plan = plan_of(GetParam());
  const StepProfile measured = measure(plan), predicted = predict(plan);
  EXPECT_EQ(measured.step.tokens, predicted.step.tokens);
  EXPECT_EQ(measured.step.useful_tokens, predicted.step.useful_tokens);
  EXPECT_EQ(measured.packing.documents, predicted.packing.documents);
  const Table counted = table_of(measured.traffic), expected = table_of(predicted.traffic);
  EXPECT_EQ(counted.size(), expected.size());
  for (const auto& [key, amount] : counted) {
    const std::string what = std::get<0>(key) + " " + std::get<1>(key) + " " + std::get<2>(key);
    ASSERT_TRUE(expected.contains(key)) << what;
    EXPECT_EQ(amount, expected.at(key)) << what;
  }
}

constexpr auto kDocuments = AttentionScope::per_document, kWhole = AttentionScope::whole_row;
constexpr auto kAuto = Placement::automatic;
constexpr auto kFp32 = NumberFormat::fp32;
constexpr auto kNone = Recompute::none;

INSTANTIATE_TEST_SUITE_P(
    Methods, DocumentProfile,
    ::testing::Values(
        Case{"hsap"}, Case{"packing", Rows::packed, kWhole}, Case{"batching", Rows::padded, kWhole},
        Case{"padded_documents", Rows::padded}, Case{"hsap_ring4", Rows::packed, kDocuments, 1, 4},
        Case{"hsap_ring3_odd_steps", Rows::packed, kDocuments, 1, 3, 1, 1, Placement::contiguous, kFp32, kNone, 5},
        Case{"hsap_2x2_bf16", Rows::packed, kDocuments, 2, 2, 1, 1, kAuto, NumberFormat::bf16},
        Case{"hsap_replicated_keys_bf16", Rows::packed, kDocuments, 4, 1, 1, 1, kAuto, NumberFormat::bf16},
        Case{"hsap_ring2_data2", Rows::packed, kDocuments, 1, 2, 2},
        Case{"hsap_ring2_pipeline2_recompute", Rows::packed, kDocuments, 1, 2, 1, 2, Placement::striped, kFp32,
             Recompute::full},
        Case{"packing_2x2", Rows::packed, kWhole, 2, 2}, Case{"batching_ring2", Rows::padded, kWhole, 1, 2},
        Case{"hsap_one_step", Rows::packed, kDocuments, 1, 2, 1, 1, kAuto, kFp32, kNone, 1}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace reckon
