#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "plan/load_plan.h"
#include "plan/nearest_legal.h"
#include "plan/parameters.h"
#include "plan/pipeline_schedule.h"

namespace reckon {
namespace {

const ConfigPaths kPaths{std::filesystem::path(RECKON_SOURCE_DIR) / "configs", {}};

/// LLaMA2-13B: 40 layers, 40 heads, 40 KV heads, FFN 13824, on one 8-device node each line of 1 rank.
Plan plan_with(const std::vector<std::string>& overrides, const std::string& model = "llama2-13b") {
  return parse_plan("model: " + model + "\nhardware: h100-80gb-8x\nbatch: {sequence_length: 4096, global_batch: 16}\n",
                    "p.yaml", overrides, kPaths);
}

/// All messages, one a line.
std::string broken(const std::vector<std::string>& overrides, const std::string& model = "llama2-13b") {
  std::string text;
  for (const Diagnostic& diagnostic : check_plan(plan_with(overrides, model))) text += diagnostic.message + "\n";
  return text;
}

std::string broken_key(const std::vector<std::string>& overrides, const std::string& model = "llama2-13b") {
  const std::vector<Diagnostic> diagnostics = check_plan(plan_with(overrides, model));
  return diagnostics.size() == 1 ? diagnostics.front().key : std::to_string(diagnostics.size()) + " broken rules";
}

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in:\n" << text;
}

TEST(CheckPlan, ALegalPlanBreaksNothing) {
  EXPECT_EQ(broken({}), "");
  EXPECT_EQ(broken({"nodes=2", "parallel.tensor=8", "parallel.data=2", "parallel.sequence=true", "parallel.zero=1"}),
            "");
  EXPECT_EQ(broken({"parallel.pipeline=4", "parallel.schedule=interleaved", "parallel.chunks=2"}), "");
}

TEST(CheckPlan, RanksMustMatchNodesTimesDevices) {
  expect_has(broken({"nodes=2", "parallel.tensor=4", "parallel.data=2"}),
             "data x pipeline x tensor x ulysses x ring = 2 x 1 x 4 x 1 x 1 = 8 ranks, but nodes x devices_per_node = "
             "2 x 8 = 16 devices; legal: "
             "data 4, or nodes 1");
  expect_has(broken({"nodes=1", "parallel.data=2"}), "legal: data 8, or nodes auto");
  EXPECT_EQ(broken_key({"nodes=1", "parallel.data=2"}), "nodes");
  EXPECT_EQ(broken({"nodes=auto", "parallel.data=2"}), "");
}

TEST(CheckPlan, RanksOfACpuMachineShareItsCores) {
  EXPECT_EQ(broken({"nodes=1", "parallel.data=2", "hardware.device.is_cpu=true", "hardware.devices_per_node=1"}), "");
}

TEST(CheckPlan, TheGlobalBatchIsDividedByMicroBatchAndReplicas) {
  EXPECT_EQ(broken({"batch.global_batch=10", "batch.micro_batch=2", "parallel.data=4"}),
            "global_batch = micro_batch x data x accumulation, but 10 is not a multiple of 2 x 4 = 8; nearest legal "
            "global_batch: 8 or 16\n");
  EXPECT_EQ(broken({"batch.global_batch=1", "parallel.data=4"}),
            "global_batch = micro_batch x data x accumulation, but 1 is not a multiple of 1 x 4 = 4; nearest legal "
            "global_batch: 4\n");
}

TEST(CheckPlan, StagesNeedLayers) {
  expect_has(broken({"parallel.pipeline=64"}),
             "64 x 1 = 64 virtual stages, but the model has 40 layers; legal: at most 40");
  EXPECT_EQ(broken({"parallel.pipeline=3", "batch.global_batch=12"}), "");  // 14, 13, 13: auto drops no layer
  EXPECT_EQ(layers_per_virtual_stage(plan_with({"parallel.pipeline=3"})), (std::vector<std::int64_t>{14, 13, 13}));
}

TEST(CheckPlan, AnUnevenListMustHoldEveryLayer) {
  EXPECT_EQ(broken({"parallel.pipeline=2", "parallel.layers_per_stage=[21, 19]"}), "");
  expect_has(broken({"parallel.pipeline=2", "parallel.layers_per_stage=[20, 19]"}),
             "layers_per_stage adds up to 20 + 19 = 39, but the model has 40 layers: 1 layers are missing");
  expect_has(broken({"parallel.pipeline=2", "parallel.layers_per_stage=[21, 20]"}), "1 layers too many");
  expect_has(broken({"parallel.pipeline=2", "parallel.layers_per_stage=[40]"}),
             "has 1 entries, but pipeline x chunks = 2 x 1 = 2");
  expect_has(broken({"parallel.pipeline=3", "parallel.layers_per_stage=[20, 0, 20]"}),
             "virtual stage 1 of layers_per_stage has no layers");
  EXPECT_EQ(broken({"parallel.pipeline=3", "parallel.layers_per_stage=[0, 20, 20]"}), "");
}

TEST(CheckPlan, VirtualStagesBelongToTheInterleavedSchedule) {
  expect_has(broken({"parallel.chunks=2"}),
             "chunks is 2, but only schedule interleaved has virtual stages; legal: chunks 1, or schedule interleaved");
  expect_has(broken({"parallel.pipeline=4", "parallel.schedule=interleaved"}), "needs chunks of 2 or more");
  EXPECT_EQ(
      broken({"parallel.pipeline=4", "parallel.schedule=interleaved", "parallel.chunks=2", "batch.global_batch=10"}),
      "schedule interleaved needs a multiple of pipeline = 4 micro-batches, but global_batch / (micro_batch x data) = "
      "10 / (1 x 1) = 10; nearest "
      "legal global_batch: 8 or 12\n");
}

TEST(CheckPlan, TensorDividesHeadsAndWidths) {
  // gcd(40 heads, FFN 13824) = 8, so that 1, 2, 4 and 8 are legal.
  const std::string message = broken({"parallel.tensor=16", "batch.sequence_length=4096"});
  expect_has(message, "the model's heads is not divisible by tensor: 40 / 16; nearest legal tensor: 8\n");
  expect_has(broken({"parallel.tensor=5"}),
             "the model's ffn_hidden is not divisible by tensor: 13824 / 5; nearest legal tensor: 4 or 8\n");
  EXPECT_EQ(broken({"parallel.tensor=8"}), "");
}

TEST(CheckPlan, AnyVocabularyIsLegalBecauseItIsPadded) {
  EXPECT_EQ(broken({"parallel.tensor=8", "model.vocabulary=32003"}), "");
}

TEST(CheckPlan, KeyValueHeadsAreSplitOrReplicatedWhole) {
  // LLaMA 3 8B: 32 heads, 8 KV heads.
  EXPECT_EQ(broken({"parallel.tensor=16", "nodes=2"}, "llama3-8b"), "");  // two ranks share a KV head
  EXPECT_EQ(broken({"parallel.tensor=8", "parallel.ulysses=4", "nodes=4"}, "llama3-8b"), "");
  expect_has(broken({"parallel.tensor=4", "model.kv_heads=6", "model.heads=24", "model.hidden=3072"}),
             "the model's 6 kv_heads and tensor x ulysses = 4 x 1 = 4: one must be a multiple of the other (key/value "
             "heads are split or replicated "
             "whole); nearest legal product: 3 or 6\n");
}

TEST(CheckPlan, SequenceParallelismSplitsEvenly) {
  EXPECT_EQ(broken({"parallel.tensor=8", "parallel.sequence=true", "batch.sequence_length=4100"}),
            "sequence parallelism splits a row's sequence_length / (ulysses x ring) = 4100 / (1 x 1) = 4100 tokens "
            "over tensor = 8 ranks, which does not "
            "come out even; nearest legal sequence_length: 4096 or 4104\n");
}

TEST(CheckPlan, ContextParallelismSplitsEvenly) {
  expect_has(broken({"parallel.ring=3", "batch.sequence_length=4096"}),
             "4096 is no multiple of 3; nearest legal sequence_length: 4095 or 4098");
  EXPECT_EQ(broken({"parallel.ring=4", "batch.sequence_length=4100"}), "");
  expect_has(broken({"parallel.ring=4", "batch.sequence_length=4100", "documents.placement=zigzag"}),
             "2 x ulysses x ring = 2 x 1 x 4 = 8 pieces, but 4100 is no multiple of 8; nearest legal sequence_length: "
             "4096 or 4104");
  expect_has(
      broken({"parallel.ulysses=16"}),
      "ulysses deals the heads / tensor = 40 / 1 = 40 heads of a rank to 16 ranks, which does not come out even; "
      "nearest legal ulysses: 10 or 20");
  EXPECT_EQ(broken_key({"parallel.ring=2", "kernels.attention=unfused"}), "kernels.attention");
}

TEST(CheckPlan, ExpertsAreSpreadOverReplicas) {
  // Mixtral 8x7B: 8 experts.
  EXPECT_EQ(broken({"parallel.data=8", "parallel.expert=8"}, "mixtral-8x7b"), "");
  expect_has(broken({"parallel.data=16", "parallel.expert=16"}, "mixtral-8x7b"),
             "8 experts are not divisible by expert = 16; nearest legal expert: 8");
  expect_has(broken({"parallel.data=2", "parallel.expert=4"}, "mixtral-8x7b"),
             "= 2 x 1 x 1 = 2 ranks, which 4 does not divide; nearest legal expert: 2");
  expect_has(broken({"parallel.data=2", "parallel.expert=2"}),
             "expert is 2, but the model has no experts to spread; legal: 1");
}

TEST(CheckPlan, ShardGroupsDivideTheReplicas) {
  EXPECT_EQ(broken({"parallel.data=16", "parallel.zero=1", "parallel.zero_group=8"}), "");
  expect_has(broken({"parallel.data=16", "parallel.zero=1", "parallel.zero_group=3"}),
             "= 16 x 1 x 1 = 16, found 3; nearest legal zero_group: 2 or 4, or auto");
  expect_has(broken({"parallel.data=48", "batch.global_batch=48", "parallel.expert=8", "parallel.zero=1",
                     "parallel.zero_group=12"},
                    "mixtral-8x7b"),
             "zero_group = 12 and expert = 8: one must be a multiple of the other");
}

TEST(CheckPlan, LearnedPositionsBoundTheRow) {
  expect_has(broken({"batch.sequence_length=4096"}, "gpt2"), "learned positions for 1024 tokens; legal: at most 1024");
  EXPECT_EQ(broken({"batch.sequence_length=1024"}, "gpt2"), "");
}

TEST(CheckPlan, TheDeviceMustComputeInTheFormat) {
  expect_has(broken({"hardware=V100"}), "the device V100-SXM2-32GB does not compute in bf16; legal: fp32, fp16");
  EXPECT_EQ(broken({"hardware=V100", "precision.compute=fp16"}), "");
  expect_has(broken({"hardware=A100", "precision.compute=fp8_e4m3"}), "does not compute in fp8_e4m3");
  EXPECT_EQ(broken({"precision.compute=fp8_e4m3"}), "");
  expect_has(broken({"precision.compute=fp32", "precision.master=bf16"}),
             "master weights in bf16 are narrower than compute in fp32");
}

TEST(CheckPlan, ListsByStageHaveOneEntryAStage) {
  EXPECT_EQ(broken({"parallel.pipeline=4", "activations.recompute=full", "activations.recompute_layers=[3,2,1,0]"}),
            "");
  EXPECT_EQ(broken({"parallel.pipeline=4", "activations.recompute=full", "activations.recompute_layers=10"}), "");
  expect_has(broken({"parallel.pipeline=4", "activations.recompute_layers=[1,2]"}),
             "recompute_layers has 2 entries, but there are 4 pipeline stages");
  expect_has(broken({"parallel.pipeline=4", "activations.recompute_layers=[11,0,0,0]"}),
             "asks for 11 layers of stage 0, which has 10; legal: 0 to 10");
  expect_has(broken({"parallel.pipeline=4", "activations.recompute_layers=11"}),
             "11 layers of the largest stage, which has 10");
  expect_has(broken({"parallel.pipeline=4", "activations.stored=int4", "activations.bits_by_stage=[4,5]"}),
             "bits_by_stage has 2 entries");
  expect_has(broken({"activations.stored=int4", "activations.bits_by_stage=[9]"}),
             "bits_by_stage holds 9, for which there is no storage format; legal: 2 to 8, or 16");
}

TEST(CheckPlan, RecomputedLayersCountAllChunksOfARank) {
  // 40 layers, 4 stages x 2 chunks: 5 each, 10 a rank.
  EXPECT_EQ(broken({"parallel.pipeline=4", "parallel.schedule=interleaved", "parallel.chunks=2",
                    "activations.recompute_layers=10"}),
            "");
  expect_has(broken({"parallel.pipeline=4", "parallel.schedule=interleaved", "parallel.chunks=2",
                     "activations.recompute_layers=11"}),
             "legal: 0 to 10");
}

TEST(CheckPlan, EightBitGradientsCannotBeSummedOnTheWire) {
  expect_has(broken({"gradients.wire=int8"}), "legal: reduce all_to_all_sum, or wire bf16 or fp32");
  EXPECT_EQ(broken({"gradients.wire=int8", "gradients.reduce=all_to_all_sum"}), "");
}

// Nodes of 8 devices. Ranks of a sum are tensor ranks apart: 3 x 4 = 12 ranks are 8 and 4 on two nodes, 2 x 4 = 8 fill
// one, 4 x 4 = 16 fill two.
TEST(CheckPlan, AHierarchicalExchangeNeedsAsManyRanksOnEveryNode) {
  const auto broken_with = [](std::vector<std::string> keys) {
    for (const char* key : {"gradients.wire=int8", "gradients.exchange=hierarchical", "parallel.tensor=4"})
      keys.emplace_back(key);
    return broken(keys);
  };
  const std::string exchange = "gradients.reduce=all_to_all_sum";
  EXPECT_EQ(broken_with({exchange, "parallel.data=2"}), "");
  EXPECT_EQ(broken_with({exchange, "parallel.data=4"}), "");
  expect_has(broken_with({exchange, "parallel.data=3", "batch.global_batch=12"}),
             "3 ranks, 4 apart, do not divide so on nodes of 8 devices; legal: flat");
  EXPECT_EQ(broken_key({"gradients.exchange=hierarchical"}), "gradients.exchange");
}

TEST(CheckPlan, TrainingValuesMakeSense) {
  EXPECT_EQ(broken_key({"optimizer.beta1=1"}), "optimizer.beta1");
  EXPECT_EQ(broken_key({"optimizer.beta2=1"}), "optimizer.beta2");
  EXPECT_EQ(broken_key({"optimizer.minimum_learning_rate=1"}), "optimizer.minimum_learning_rate");
  expect_has(broken({"sim.slow_ranks={1: 2.0}"}), "slow_ranks names rank 1, but there are 1 ranks; legal: 0 to 0");
}

TEST(CheckPlan, EveryBrokenRuleIsListed) {
  const std::vector<Diagnostic> diagnostics =
      check_plan(plan_with({"nodes=3", "parallel.tensor=16", "parallel.data=3", "parallel.chunks=2",
                            "parallel.expert=2", "gradients.wire=int8", "optimizer.beta1=1"}));
  std::vector<std::string> keys;
  for (const Diagnostic& one : diagnostics) keys.push_back(one.key);
  EXPECT_EQ(keys,
            (std::vector<std::string>{"nodes", "batch.global_batch", "parallel.chunks", "parallel.tensor",
                                      "parallel.tensor", "parallel.expert", "gradients.reduce", "optimizer.beta1"}));
  for (const Diagnostic& one : diagnostics) EXPECT_EQ(one.file, "p.yaml");
}

TEST(CheckPlan, SizesNearOverflowAreErrorsNotWrongNumbers) {
  expect_has(broken({"parallel.data=1000000", "parallel.pipeline=1000", "parallel.tensor=8"}),
             "ranks; at most 16777216 can be planned");
  expect_has(broken({"batch.sequence_length=1000000000", "batch.global_batch=1000000000"}), "1e+18 tokens a step");
  expect_has(broken({"batch.global_batch=1000000000"}), "pipeline actions");
  expect_has(broken({"batch.sequence_length=1000000000", "batch.micro_batch=16", "kernels.attention=unfused"}),
             "bytes a replica");
  Plan plan = plan_with({});
  plan.parallel.data = plan.parallel.pipeline = plan.parallel.tensor = plan.parallel.ulysses = plan.parallel.ring =
      std::int64_t{1} << 31;
  EXPECT_EQ(check_plan(plan).size(), 5u);  // each is out of range by itself
  plan = plan_with({});
  plan.batch.sequence_length = 1000000000000000000;
  EXPECT_EQ(check_plan(plan).at(0).key, "batch.sequence_length");
  plan.batch = {0, 0, 0};
  EXPECT_EQ(check_plan(plan).size(), 3u);
  EXPECT_FALSE(check_plan(Plan{}).empty());
}

TEST(PlanWarnings, NameOptionsWithoutEffect) {
  const auto warnings = [](const std::vector<std::string>& overrides) {
    std::string text;
    for (const std::string& warning : plan_warnings(plan_with(overrides))) text += warning + "\n";
    return text;
  };
  EXPECT_EQ(warnings({"parallel.tensor=8", "parallel.sequence=true"}), "");
  expect_has(warnings({"parallel.sequence=true"}), "parallel.sequence has no effect at tensor 1");
  expect_has(warnings({"parallel.zero=1"}), "parallel.zero 1 has no effect at data 1");
  EXPECT_EQ(warnings({"parallel.zero=1", "parallel.ring=2"}), "");  // states are shared over data x context
  expect_has(warnings({"parallel.zero_group=1"}), "parallel.zero_group 1 has no effect at zero 0");
  expect_has(warnings({"parallel.expert_imbalance=1.5"}), "parallel.expert_imbalance has no effect at expert 1");
  expect_has(warnings({"parallel.schedule=interleaved"}), "parallel.schedule interleaved has no effect at pipeline 1");
  expect_has(warnings({"parallel.zero=3", "parallel.data=2", "parallel.pipeline=2"}),
             "after each of the 8 micro-batches");
  expect_has(warnings({"parallel.pipeline=20"}), "16 micro-batches cannot keep 20 pipeline stages busy");
  expect_has(warnings({"documents.placement=zigzag"}), "documents.placement zigzag has no effect at ring 1");
  expect_has(warnings({"activations.recompute_layers=3"}), "no effect at recompute none");
  expect_has(warnings({"activations.bits_by_stage=[4]"}), "activations.bits_by_stage has no effect");
  expect_has(warnings({"activations.classes.ffn_hidden=int4"}), "activations.classes.ffn_hidden has no effect");
  expect_has(warnings({"activations.classes.attention_scores=int4"}), "scores are never stored");
  expect_has(warnings({"gradients.reduce=all_to_all_sum"}), "nothing to reduce");
  expect_has(warnings({"gradients.reduce=all_to_all_sum", "gradients.exchange=hierarchical", "parallel.data=8"}),
             "gradients.exchange hierarchical has no effect");
  EXPECT_EQ(warnings({"gradients.reduce=all_to_all_sum", "gradients.exchange=hierarchical", "parallel.data=16"}), "");
  expect_has(warnings({"documents.rows=padded"}), "one document fills the row");
  expect_has(warnings({"optimizer.minimum_learning_rate=1e-5"}), "no effect at schedule constant");
  expect_has(warnings({"train.steps=2"}), "leaves none of the 2 steps");
  expect_has(warnings({"parallel.tensor=16"}), "tensor 16 spans nodes of 8 devices");
  expect_has(warnings({"parallel.tensor=8", "parallel.ulysses=5"}), "tensor x ulysses = 40 spans nodes");
  expect_has(warnings({"parallel.data=12"}), "12 ranks on nodes of 8 devices leave 4 devices idle");
}

TEST(NearestLegal, OffersTheNeighbours) {
  EXPECT_EQ(nearest_divisors(40, 16), (std::vector<std::int64_t>{10, 20}));
  EXPECT_EQ(nearest_divisors(8, 16), (std::vector<std::int64_t>{8}));
  EXPECT_EQ(nearest_divisors(7, 3), (std::vector<std::int64_t>{1, 7}));
  EXPECT_EQ(nearest_divisors(36, 5), (std::vector<std::int64_t>{4, 6}));
  EXPECT_EQ(nearest_multiples(8, 10), (std::vector<std::int64_t>{8, 16}));
  EXPECT_EQ(nearest_multiples(8, 3), (std::vector<std::int64_t>{8}));
  EXPECT_EQ(either({8, 16}), "8 or 16");
}

/// What later code divides by, for any plan that passes the check.
TEST(CheckPlan, TenThousandRandomPlansAreLegalOrRefusedWithASentence) {
  std::mt19937_64 random(7);
  const auto pick = [&](const auto& values) { return values[random() % std::size(values)]; };
  const std::int64_t degrees[] = {1, 1, 1, 2, 2, 3, 4, 5, 6, 8, 12, 16, 64, 1000, 1 << 20, 0, -1, INT64_MAX, INT64_MIN};
  const std::int64_t lengths[] = {1, 7, 128, 4096, 32768, 1 << 20, 1 << 30, 0, -5, INT64_MAX};
  const std::vector<Plan> bases = {plan_with({}), plan_with({}, "mixtral-8x7b"), plan_with({}, "gpt2"),
                                   plan_with({}, "deepseek-v3")};
  int legal = 0;
  for (int i = 0; i < 10000; ++i) {
    Plan plan = pick(bases);
    ParallelSpec& parallel = plan.parallel;
    for (std::int64_t* degree :
         {&parallel.data, &parallel.pipeline, &parallel.tensor, &parallel.ulysses, &parallel.ring, &parallel.expert}) {
      if (random() % 3 == 0) *degree = pick(degrees);
    }
    if (random() % 4 == 0) parallel.chunks = pick(degrees);
    if (random() % 4 == 0) parallel.zero_group = pick(degrees);
    if (random() % 8 == 0) parallel.layers_per_stage = {pick(degrees), pick(degrees)};
    if (random() % 8 == 0) plan.activations.recompute_layers = {pick(degrees), pick(degrees)};
    if (random() % 8 == 0) plan.activations.bits_by_stage = {static_cast<int>(random() % 20)};
    parallel.zero = static_cast<int>(random() % 5);
    parallel.schedule = static_cast<ScheduleKind>(random() % 3);
    parallel.sequence = random() % 2 == 0;
    if (random() % 2 == 0) plan.batch = {pick(lengths), pick(degrees), pick(lengths)};
    if (random() % 8 == 0) plan.nodes = pick(degrees);
    if (random() % 16 == 0) plan.hardware.devices_per_node = static_cast<int>(random() % 20) - 5;
    if (random() % 16 == 0) plan.model.layers = pick(degrees);
    const std::vector<Diagnostic> diagnostics = check_plan(plan);
    for (const Diagnostic& one : diagnostics) {
      EXPECT_FALSE(one.message.empty());
      EXPECT_FALSE(one.key.empty());
    }
    if (!diagnostics.empty()) continue;
    ++legal;
    EXPECT_EQ(plan.micro_batches() * plan.batch.micro_batch * parallel.data, plan.batch.global_batch);
    EXPECT_EQ(plan.batch.sequence_length % plan.context(), 0);
    EXPECT_GT(plan.world_size(), 0);
    std::int64_t layers = 0;
    for (const std::int64_t count : layers_per_virtual_stage(plan)) layers += count;
    EXPECT_EQ(layers, plan.model.layers);
    const auto actions =
        pipeline_actions(parallel.schedule, static_cast<int>(parallel.pipeline), 0, static_cast<int>(parallel.chunks),
                         static_cast<int>(std::min<std::int64_t>(plan.micro_batches(), 64 * parallel.pipeline)));
    EXPECT_FALSE(actions.empty());
    plan_warnings(plan);
    EXPECT_EQ(write_plan(parse_plan(write_plan(plan), "q", {}, {})), write_plan(plan));
  }
  EXPECT_GT(legal, 300);  // the rest of the test means something
}

TEST(CheckPlan, ClassesByStageNeedAPolicyForEveryStage) {
  EXPECT_EQ(broken_key({"activations.classes.gate=[int4, int5, int6]"}), "activations.classes");
  expect_has(broken({"activations.stored=uint4", "activations.scale=e8m0"}), "legal: bf16, fp32");
  expect_has(broken({"activations.stored=int4", "activations.block=20"}), "nearest 16 and 24");
}

TEST(CheckPlan, UnscaledStorageIsTheFormatOfComputedTensors) {
  EXPECT_EQ(broken_key({"activations.stored=fp32"}), "activations.stored");
  expect_has(broken({"activations.stored=fp16"}), "legal: bf16, or a block-scaled format");
  EXPECT_EQ(broken({"activations.stored=int4"}), "");
  EXPECT_EQ(broken({"activations.stored=bf16"}), "");
}

TEST(CheckPlan, ChunksNeedAPipelineToInterleave) {
  EXPECT_EQ(broken_key({"parallel.schedule=interleaved", "parallel.chunks=2"}), "parallel.chunks");
  EXPECT_EQ(broken({"parallel.schedule=interleaved"}), "");
}

TEST(PlanWarnings, GpipeHasAnEffectWithoutAPipeline) {
  EXPECT_EQ(plan_warnings(plan_with({"parallel.schedule=gpipe"})), std::vector<std::string>{});  // all kept at once
}

TEST(PlanWarnings, ResolvedPlacementWithoutARingIsNoSurprise) {
  EXPECT_EQ(plan_warnings(plan_with({"documents.placement=contiguous"})), std::vector<std::string>{});
}

}  // namespace
}  // namespace reckon
