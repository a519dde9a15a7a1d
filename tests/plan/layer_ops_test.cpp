#include "plan/layer_ops.h"

#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/small_plans.h"

namespace reckon {
namespace {

OpList dense(const Plan& plan) {
  return section_ops(plan, Section::dense_layer, single_document_work(plan));
}

const Op& op_named(const OpList& list, std::string_view name) {
  for (const Op& op : list.ops)
    if (op.name == name) return op;
  throw std::out_of_range(std::string(name));
}

std::vector<std::string> names(const OpList& list) {
  std::vector<std::string> result;
  for (const Op& op : list.ops) result.emplace_back(op.name);
  return result;
}

std::vector<std::pair<std::string, std::int64_t>> calls(const std::vector<CollectiveCall>& collectives) {
  std::vector<std::pair<std::string, std::int64_t>> result;
  for (const CollectiveCall& c : collectives) result.emplace_back(name_of(c.collective), c.bytes.value);
  return result;
}

using Calls = std::vector<std::pair<std::string, std::int64_t>>;

TEST(LayerOps, LlamaLayerHasTheAgreedNamesInOrder) {
  EXPECT_EQ(names(dense(llama3_8b(8192))),
            (std::vector<std::string>{"attention_norm", "qkv", "rope", "attention", "projection", "attention_residual",
                                      "ffn_norm", "gate_up", "activation", "down", "ffn_residual"}));
}

TEST(LayerOps, ProductsOfALlamaLayerMultiplyTheLayersWeights) {
  const Plan plan = llama3_8b(8192);
  std::int64_t weights = 0;
  double flops = 0;
  for (const Op& op : dense(plan).ops) {
    weights += op.weights;
    flops += op.gemm.flops();
  }
  // 2 h ad + 2 h gd + 3 h f + 2 h with h = 4096, ad = 4096, gd = 1024, f = 14336
  EXPECT_EQ(weights, 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336 + 2 * 4096);
  EXPECT_DOUBLE_EQ(flops, 2.0 * 8192 * (2.0 * 4096 * 4096 + 2.0 * 4096 * 1024 + 3.0 * 4096 * 14336));
}

TEST(LayerOps, TensorParallelismDividesWeightsAndReplicatesScarceKvHeads) {
  Plan plan = llama3_8b(8192);
  plan.parallel.tensor = 16;  // 8 KV heads: each rank holds one
  EXPECT_EQ(op_named(dense(plan), "qkv").gemm.n, (2 + 2 * 1) * 128);
  EXPECT_EQ(op_named(dense(plan), "down").weights, 4096 * 14336 / 16);
}

TEST(LayerOps, CausalAttentionCountsVisiblePairsOnly) {
  const Plan plan = llama3_8b(8192);
  const Op op = op_named(dense(plan), "attention");
  EXPECT_DOUBLE_EQ(op.attention.pairs, 8192.0 * 8193 / 2);
  EXPECT_DOUBLE_EQ(op.attention.forward_flops(), 2.0 * (8192.0 * 8193 / 2) * 32 * 256);
}

TEST(LayerOps, SlidingWindowCountsItsTriangleAndBand) {
  Plan plan = llama3_8b(8);
  plan.model.sliding_window = 3;  // rows see 1, 2, 3, 3, 3, 3, 3, 3 keys
  EXPECT_DOUBLE_EQ(single_document_work(plan).pairs_per_row, 21);
  plan.model.sliding_window_every = 2;  // the other half of the layers sees 36
  EXPECT_DOUBLE_EQ(single_document_work(plan).pairs_per_row, (21 + 36) / 2.0);
}

TEST(LayerOps, SequenceParallelismGathersBeforeColumnAndScattersAfterRowProducts) {
  Plan plan = llama3_8b(8192);
  plan.parallel.tensor = 8;
  plan.parallel.sequence = true;
  const OpList list = dense(plan);
  const std::int64_t whole = 8192 * 4096 * 2;
  for (const std::string_view name : {"qkv", "gate_up"}) {
    EXPECT_EQ(calls(op_named(list, name).forward_collectives), (Calls{{"all_gather", whole}}));
    EXPECT_EQ(calls(op_named(list, name).backward_collectives),
              (Calls{{"all_gather", whole}, {"reduce_scatter", whole}}));
  }
  for (const std::string_view name : {"projection", "down"}) {
    EXPECT_EQ(calls(op_named(list, name).forward_collectives), (Calls{{"reduce_scatter", whole}}));
    EXPECT_EQ(calls(op_named(list, name).backward_collectives), (Calls{{"all_gather", whole}}));
  }
  EXPECT_EQ(list.tensors[0].elements, 8192 / 8 * 4096);
}

TEST(LayerOps, PlainTensorParallelismHasFourAllReducesALayer) {
  Plan plan = llama3_8b(8192);
  plan.parallel.tensor = 8;
  const OpList list = dense(plan);
  int forward = 0, backward = 0;
  for (const Op& op : list.ops) {
    for (const CollectiveCall& c : op.forward_collectives) forward += c.collective == Collective::all_reduce;
    for (const CollectiveCall& c : op.backward_collectives) backward += c.collective == Collective::all_reduce;
  }
  EXPECT_EQ(forward, 2);
  EXPECT_EQ(backward, 2);
}

TEST(LayerOps, UlyssesExchangesQueriesKeysValuesAndOutput) {
  Plan plan = llama3_8b(8192);
  plan.parallel.ulysses = 4;
  const OpList list = dense(plan);
  const std::int64_t tokens = 8192 / 4;
  EXPECT_EQ(calls(op_named(list, "scatter_heads").forward_collectives),
            (Calls{{"all_to_all", tokens * (4096 + 2 * 1024) * 2}}));
  EXPECT_EQ(calls(op_named(list, "gather_heads").forward_collectives), (Calls{{"all_to_all", tokens * 4096 * 2}}));
  EXPECT_EQ(op_named(list, "attention").attention.heads, 8);
  EXPECT_EQ(op_named(list, "attention").attention.kv_heads, 2);
  EXPECT_EQ(op_named(list, "attention").attention.queries, 8192);
  plan.parallel.ulysses = 16;  // 8 KV heads on 16 ranks: replicated, 16 heads travel
  EXPECT_EQ(calls(op_named(dense(plan), "scatter_heads").forward_collectives),
            (Calls{{"all_to_all", 8192 / 16 * (4096 + 2 * 16 * 128) * 2}}));
}

TEST(LayerOps, RingPassesTheBlocksThatTheWorkNeeds) {
  Plan plan = llama3_8b(8192);
  plan.parallel.ring = 8;
  const std::int64_t block = 8192 / 8 * 2 * 1024 * 2;
  const Op full = op_named(dense(plan), "attention");
  EXPECT_EQ(full.forward_collectives.at(0).calls, 7);
  EXPECT_EQ(full.forward_collectives.at(0).bytes.value, block);
  EXPECT_EQ(full.backward_collectives.at(0).bytes.value, block);
  EXPECT_EQ(full.backward_collectives.at(1).bytes.value, 2 * block);  // gradients, in fp32
  AttentionWork work = single_document_work(plan);
  work.key_blocks = work.gradient_blocks = 1.5;
  work.messages = 2;
  const Op pruned = op_named(section_ops(plan, Section::dense_layer, work), "attention");
  EXPECT_EQ(pruned.forward_collectives.at(0).calls, 2);
  EXPECT_EQ(pruned.forward_collectives.at(0).bytes.value, block * 3 / 4);
}

TEST(LayerOps, ContiguousRingHasTheTriangleImbalance) {
  Plan plan = llama3_8b(8192);
  plan.parallel.ring = 8;
  plan.documents.placement = Placement::contiguous;
  EXPECT_NEAR(single_document_work(plan).imbalance, 1.875, 0.001);  // (2c-1)/c in the limit of long rows
  EXPECT_DOUBLE_EQ(single_document_work(plan).key_blocks, 7);
}

TEST(LayerOps, VocabularyParallelHeadReducesTheLossOverTheTensorGroup) {
  Plan plan = llama3_8b(8192);
  plan.parallel.tensor = 4;
  const OpList list = section_ops(plan, Section::head, {});
  EXPECT_EQ(op_named(list, "head").gemm.n, 128256 / 4);
  EXPECT_EQ(calls(op_named(list, "loss").forward_collectives),
            (Calls{{"all_reduce", 4 * 8192}, {"all_reduce", 8 * 8192}}));
}

TEST(LayerOps, GptLayerHasNoGateAndNoRotation) {
  EXPECT_EQ(names(dense(gpt(1024))),
            (std::vector<std::string>{"attention_norm", "qkv", "attention", "projection", "attention_residual",
                                      "ffn_norm", "up", "activation", "down", "ffn_residual"}));
}

TEST(LayerOps, ExpertsMultiplyEveryRowAsOftenAsItIsRouted) {
  const Plan plan = small_moe();
  const OpList list = section_ops(plan, Section::moe_layer, single_document_work(plan));
  const Op& product = op_named(list, "experts_gate_up");
  EXPECT_EQ(product.gemm.batch, 4);       // 8 experts over 2 ranks
  EXPECT_EQ(product.gemm.m, 64 * 2 / 4);  // 64 tokens, 2 experts each, on 4 experts
  EXPECT_EQ(calls(op_named(list, "dispatch").forward_collectives), (Calls{{"all_to_all", 64 * 2 * 32 * 2}}));
  EXPECT_EQ(calls(op_named(list, "combine").backward_collectives), (Calls{{"all_to_all", 64 * 2 * 32 * 2}}));
  EXPECT_EQ(op_named(list, "shared_gate_up").gemm.n, 2 * 48);
}

// 128 rows on average; 1.3 times as many are 166.4. Two ranks exchange 256 rows in all, so 3 times the mean cannot be.
TEST(LayerOps, TheBusiestExpertRankReceivesMoreRows) {
  Plan plan = small_moe();
  const auto busiest_rows = [&plan](double imbalance) {
    plan.parallel.expert_imbalance = imbalance;
    const OpList list = section_ops(plan, Section::moe_layer, single_document_work(plan));
    return op_named(list, "combine").forward_collectives.front().bytes.value / (32 * 2);
  };
  EXPECT_EQ(busiest_rows(1.0), 128);
  EXPECT_EQ(busiest_rows(1.3), 167);
  EXPECT_EQ(busiest_rows(3.0), 256);
}

TEST(LayerOps, LatentAttentionReplacesTheQkvProduct) {
  const OpList list = dense(small_mla());
  const auto list_names = names(list);
  EXPECT_EQ(std::vector<std::string>(list_names.begin(), list_names.begin() + 7),
            (std::vector<std::string>{"attention_norm", "latent_down", "latent_norm", "query_up", "latent_up", "rope",
                                      "attention"}));
  EXPECT_EQ(op_named(list, "query_up").gemm.n, 4 * (8 + 4));
  EXPECT_EQ(op_named(list, "latent_up").gemm.n, 4 * (8 + 6));
  EXPECT_EQ(op_named(list, "projection").gemm.k, 4 * 6);
  EXPECT_EQ(op_named(list, "attention").attention.value_dim, 6);
}

// What the walkers rely on, for every family: inputs are made before they are read, views lie inside their whole.
TEST(LayerOps, ListsAreWellFormed) {
  Plan tp = llama3_8b(4096), qwen = llama3_8b(64), olmo = llama3_8b(64), neox = gpt(64), sp = llama3_8b(4096);
  tp.parallel.tensor = sp.parallel.tensor = 4;
  sp.parallel.sequence = true;
  sp.parallel.ulysses = sp.parallel.ring = 2;
  qwen.model.qk_norm = true;
  olmo.model.qk_norm_full = olmo.model.post_norm = true;
  olmo.model.pre_norm = false;
  neox.model.parallel_block = true;
  neox.model.block_norms = 1;
  for (const Plan& plan : {tp, sp, qwen, olmo, neox, gpt(64), small_moe(), small_mla()})
    for (const Section section : {Section::embedding, Section::dense_layer, Section::moe_layer, Section::head}) {
      if (section == Section::moe_layer && !plan.model.is_moe()) continue;
      const OpList list = section_ops(plan, section, single_document_work(plan));
      std::set<int> made{0};
      if (section == Section::head) made.insert(1);  // targets
      for (const Op& op : list.ops) {
        for (const int tensor : op.inputs) EXPECT_TRUE(made.contains(tensor)) << op.name << " reads " << tensor;
        made.insert(op.outputs.begin(), op.outputs.end());
        for (const int tensor : op.saved) EXPECT_TRUE(made.contains(tensor)) << op.name << " saves " << tensor;
        EXPECT_GE(op.forward_traffic.value, 0);
      }
      for (const Tensor& tensor : list.tensors) {
        EXPECT_GT(tensor.elements, 0) << tensor.name;
        if (tensor.storage_of < 0) continue;
        const Tensor& whole = list.tensors[static_cast<std::size_t>(tensor.storage_of)];
        EXPECT_EQ(whole.storage_of, -1) << tensor.name;
        EXPECT_LE(tensor.elements, whole.elements) << tensor.name;
      }
    }
}

TEST(LayerOps, ShapeKeysAreCanonical) {
  const OpList list = dense(llama3_8b(8192));
  EXPECT_EQ(shape_key(op_named(list, "qkv")), "gemm 8192x6144x4096");
  EXPECT_EQ(shape_key(op_named(list, "attention")),
            "attention queries 8192 heads 32/8 dim 128/128 keys 8192 pairs 33558528");
}

TEST(LayerOps, TheFirstOfEveryNLayersHasTheWindow) {
  Plan plan = llama3_8b(8);
  plan.model.layers = 5;
  plan.model.sliding_window = 3;
  plan.model.sliding_window_every = 2;  // layers 0, 2, 4 of 5
  EXPECT_DOUBLE_EQ(single_document_work(plan).pairs_per_row, (3 * 21.0 + 2 * 36) / 5);
}

TEST(LayerOps, AWindowEvensOutAContiguousRingAndShortensItsTransfers) {
  Plan plan = llama3_8b(16);
  plan.parallel.ring = 4;
  plan.documents.placement = Placement::contiguous;
  plan.model.sliding_window = 3;  // ranks see 1+2+3+3 = 9, 12, 12, 12 keys and need the 2 tokens before their own 4
  EXPECT_DOUBLE_EQ(single_document_work(plan).imbalance, 12 / (45 / 4.0));
  EXPECT_DOUBLE_EQ(single_document_work(plan).key_blocks, 2 / 4.0);
  plan.documents.placement = Placement::zigzag;  // runs of 2: ranks see 3+6, 6+6, ...; before each run 2 are needed
  EXPECT_DOUBLE_EQ(single_document_work(plan).imbalance, 12 / (45 / 4.0));
  EXPECT_DOUBLE_EQ(single_document_work(plan).key_blocks, 4 / 4.0);
}

TEST(LayerOps, AutomaticPlacementOfWholeRowsIsLegalForEveryLegalRow) {
  Plan plan = llama3_8b(12);
  EXPECT_EQ(planned_placement(plan), Placement::contiguous);
  plan.parallel.ring = 2;
  EXPECT_EQ(planned_placement(plan), Placement::zigzag);  // 4 runs of 3
  plan.parallel.ring = 4;
  EXPECT_EQ(planned_placement(plan), Placement::striped);  // 12 is no multiple of 8
  EXPECT_DOUBLE_EQ(single_document_work(plan).imbalance, 1);
  plan.documents.source = "fineweb";
  EXPECT_EQ(planned_placement(plan), Placement::automatic);  // chosen row by row
}

}  // namespace
}  // namespace reckon
