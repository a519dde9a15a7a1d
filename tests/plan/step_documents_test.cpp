#include "plan/step_documents.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/small_plans.h"

namespace reckon {
namespace {

Plan plan_with(const std::string& source, std::int64_t row_tokens, std::int64_t ring) {
  Plan plan;
  plan.model.layers = 2;
  plan.model.hidden = 64;
  plan.model.heads = plan.model.kv_heads = 4;
  plan.model.head_dim = 16;
  plan.batch = {row_tokens, 2, 16};
  plan.parallel.data = 2;
  plan.parallel.ring = ring;
  plan.documents.source = source;
  return plan;
}

TEST(StepPacker, GivesEveryMicroBatchItsRowsAndEveryTokenOnce) {
  const Plan plan = plan_with("fineweb", 4096, 1);
  StepPacker packer(plan), again(plan);
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  for (int step = 0; step < 3; ++step) {
    const auto groups = packer.next();
    ASSERT_EQ(groups.size(), 8u);  // 2 replicas of 4 micro-batches
    const auto same = again.next();
    for (std::size_t i = 0; i < groups.size(); ++i) {
      ASSERT_EQ(groups[i].size(), 2u);
      for (std::size_t row = 0; row < 2; ++row) {
        EXPECT_EQ(groups[i][row].pieces, same[i][row].pieces);
        EXPECT_GT(groups[i][row].tokens(), 4096 * 95 / 100);
        for (const Piece& piece : groups[i][row].pieces) EXPECT_TRUE(seen.insert({piece.document, piece.first}).second);
      }
    }
  }
}

TEST(StepPacker, ReplicasGetLikeWork) {
  Plan plan = plan_with("fineweb", 8192, 1);
  plan.batch = {8192, 1, 256};
  plan.parallel.data = 8;
  EXPECT_LT(document_work(plan).replica_imbalance, 1.01);
  plan.documents.packer = Packer::concatenate;  // dealing balances rows of any packer
  EXPECT_LT(document_work(plan).replica_imbalance, 1.01);
}

TEST(DocumentWork, SingleDocumentsAreFullCausalRows) {
  const DocumentWork work = document_work(plan_with("single", 4096, 1));
  EXPECT_EQ(work.attention.pairs_per_row, 4096.0 * 4097 / 2);
  EXPECT_EQ(work.attention.imbalance, 1.0);
  EXPECT_EQ(work.attention.key_blocks, 0.0);
  EXPECT_EQ(work.packing.documents, 16);
  EXPECT_EQ(work.packing.real_token_share, 1.0);
  EXPECT_EQ(work.replica_imbalance, 1.0);
}

TEST(DocumentWork, ThreeMethodsOnTheSameDocuments) {
  Plan hsap = plan_with("fineweb", 8192, 4);
  const DocumentWork per_document = document_work(hsap);
  Plan packing = hsap;
  packing.documents.attention = AttentionScope::whole_row;
  packing.documents.placement = Placement::zigzag;
  const DocumentWork whole_row = document_work(packing);
  Plan batching = packing;
  batching.documents.rows = Rows::padded;
  const DocumentWork padded = document_work(batching);
  EXPECT_EQ(whole_row.attention.pairs_per_row, 8192.0 * 8193 / 2);
  EXPECT_EQ(padded.attention.pairs_per_row, 8192.0 * 8193 / 2);  // padding is computed too
  EXPECT_LT(per_document.attention.pairs_per_row, 0.35 * whole_row.attention.pairs_per_row);
  EXPECT_EQ(whole_row.attention.key_blocks, 3.0);
  EXPECT_LT(per_document.attention.key_blocks, 1.0);
  EXPECT_GT(whole_row.packing.real_token_share, 0.97);
  EXPECT_LT(padded.packing.real_token_share, 0.15);
  EXPECT_EQ(whole_row.packing.placement, "zigzag");
}

TEST(DocumentWork, WindowsLimitThePairs) {
  Plan plan = plan_with("single", 1024, 1);
  plan.model.sliding_window = 256;
  plan.model.sliding_window_every = 2;
  const double windowed = 256.0 * 257 / 2 + 768.0 * 256, full = 1024.0 * 1025 / 2;
  EXPECT_EQ(document_work(plan).attention.pairs_per_row, (windowed + full) / 2);
}

TEST(DocumentWork, CostsFollowTheHardware) {
  Plan plan = plan_with("fineweb", 8192, 4);
  EXPECT_EQ(placement_costs(plan).key_token, PlacementCosts{}.key_token);  // no hardware: the documented default
  plan.hardware.device.peak[NumberFormat::bf16] = FlopsPerSecond(1e12);
  plan.hardware.intra_node.bandwidth = BytesPerSecond(1e10);
  plan.hardware.time.attention_backward.flops_factor = 2.0;
  // 3.5 * 2 * (16 + 16) * 4 heads * 2 / 1e12 and 3 * 32 * 4 heads * 2 bytes / 1e10
  EXPECT_DOUBLE_EQ(placement_costs(plan).pair, 3.5 * 2 * 32 * 4 * 2 / 1e12);
  EXPECT_DOUBLE_EQ(placement_costs(plan).key_token, (2 * 2.0 + 4) * 32 * 4 / 1e10);
}

TEST(PricedSteps, AreThoseARunTimes) {
  Plan plan = plan_with("fineweb", 4096, 1);  // 16 rows a step
  const auto expect = [&](std::int64_t steps, std::int64_t warmup, PricedSteps expected) {
    plan.train.steps = steps;
    plan.train.warmup = warmup;
    const PricedSteps priced = priced_steps(plan);
    EXPECT_EQ(priced.first, expected.first);
    EXPECT_EQ(priced.count, expected.count);
    EXPECT_EQ(priced.is_sample, expected.is_sample);
  };
  expect(20, 2, {2, 18, false});
  expect(2, 2, {1, 1, false});  // the last one, where no more remain
  expect(1, 0, {0, 1, false});
  expect(35, 2, {2, 32, true});  // 32 steps hold 512 rows
  plan.batch.global_batch = 1024;
  expect(20, 2, {2, 1, true});
}

TEST(PricedSteps, TheirTokensAreCountedAndTheirMedianPairsPriced) {
  Plan plan = plan_with("code", 2048, 1);
  plan.batch.global_batch = 4;
  plan.train.steps = 5;
  plan.train.warmup = 2;
  StepPacker packer(plan);
  double tokens = 0;
  std::vector<double> pairs;
  for (int step = 0; step < 5; ++step) {
    double of_step = 0;
    for (const auto& group : packer.next())
      for (const PackedRow& row : group) {
        if (step >= 2) tokens += static_cast<double>(row.tokens());
        of_step += row.pairs();
      }
    if (step >= 2) pairs.push_back(of_step / 4);
  }
  std::sort(pairs.begin(), pairs.end());
  EXPECT_LT(pairs.front(), pairs.back());
  const DocumentWork work = document_work(plan);
  EXPECT_DOUBLE_EQ(work.useful_tokens, tokens / 3);
  EXPECT_DOUBLE_EQ(work.attention.pairs_per_row, pairs[1]);
}

TEST(DocumentWork, WholeRowsAreAlikeForEveryReplica) {
  Plan plan = plan_with("code", 2048, 1);
  plan.documents.rows = Rows::padded;
  EXPECT_GT(document_work(plan).replica_imbalance, 1.0);
  plan.documents.attention = AttentionScope::whole_row;
  EXPECT_EQ(document_work(plan).replica_imbalance, 1.0);
}

TEST(PlannedDocuments, OneDocumentARowIsTheClosedForm) {
  Plan plan = llama3_8b(4096);
  plan.parallel.ring = 4;
  plan.batch.global_batch = 3;
  const DocumentWork work = planned_documents(plan);
  EXPECT_EQ(work.packing.documents, 3);
  EXPECT_EQ(work.packing.placement, "zigzag");
  EXPECT_DOUBLE_EQ(work.packing.imbalance, 1);
  EXPECT_DOUBLE_EQ(work.packing.kv_blocks_max, 3);
  EXPECT_EQ(planned_attention_work(plan).pairs_per_row, single_document_work(plan).pairs_per_row);
}

TEST(PlannedDocuments, ThePacksOfASourceArePricedAtTheSlowestReplica) {
  Plan plan = llama3_8b(4096);
  plan.documents.source = "fineweb";
  plan.parallel.data = 2;
  plan.batch.global_batch = 4;
  const DocumentWork work = document_work(plan);
  const AttentionWork planned = planned_attention_work(plan);
  EXPECT_LT(planned.pairs_per_row, single_document_work(plan).pairs_per_row);
  EXPECT_DOUBLE_EQ(planned.pairs_per_row, work.attention.pairs_per_row);
  EXPECT_DOUBLE_EQ(planned.imbalance, work.attention.imbalance * work.replica_imbalance);
}

}  // namespace
}  // namespace reckon
