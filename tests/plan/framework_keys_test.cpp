// Keys that describe what other training stacks keep beyond a fused one; bytes by hand.
#include <gtest/gtest.h>

#include "plan/kept_tensors.h"
#include "tests/support/small_plans.h"

namespace reckon {
namespace {

Bytes kept(const Plan& plan, Section section, Recompute recompute = Recompute::none) {
  return kept_tensors(plan, section_ops(plan, section, single_document_work(plan)), recompute, 0).bytes();
}

// arXiv 2205.05198, equation 1: s b h (34 + 5 a s / h) without what this project has beside it (norm statistics: two
// fp32 a row and norm, 16 bytes). The mask of attention, 1 byte a score, and the dropped-out scores are in the 5.
TEST(Dropout, GptLayerWithUnfusedAttentionKeepsThePapersBytes) {
  Plan plan = gpt(32);
  plan.kernels.attention = AttentionKernel::unfused;
  plan.kernels.dropout = true;
  const std::int64_t rows = plan.batch.micro_batch * plan.batch.sequence_length, hidden = plan.model.hidden;
  EXPECT_EQ(kept(plan, Section::dense_layer).value,
            rows * (34 * hidden + 5 * plan.model.heads * plan.batch.sequence_length + 16));
}

// Selective recomputation drops everything that grows with the square of the row.
TEST(Dropout, SelectiveRecomputationDropsScoresAndTheirMask) {
  Plan plan = gpt(32);
  plan.kernels.attention = AttentionKernel::unfused;
  plan.kernels.dropout = true;
  const std::int64_t rows = plan.batch.micro_batch * plan.batch.sequence_length;
  EXPECT_EQ(kept(plan, Section::dense_layer, Recompute::selective).value, rows * (34 * plan.model.hidden + 16));
}

TEST(Dropout, EmbeddingKeepsOneByteAnElementMore) {
  Plan plan = gpt(32);
  const Bytes without = kept(plan, Section::embedding);
  plan.kernels.dropout = true;
  EXPECT_EQ((kept(plan, Section::embedding) - without).value,
            plan.batch.micro_batch * plan.batch.sequence_length * plan.model.hidden);
}

TEST(UnfusedActivation, KeepsTheActivatedGateAsWell) {
  Plan plan = llama3_8b(8192);
  const Bytes fused = kept(plan, Section::dense_layer);
  plan.kernels.activation = ActivationKernel::unfused;
  EXPECT_EQ((kept(plan, Section::dense_layer) - fused).value, 2LL * 8192 * 14336);
}

TEST(UnfusedActivation, ChangesNothingWithoutAGate) {
  Plan plan = gpt(32);
  const Bytes fused = kept(plan, Section::dense_layer);
  plan.kernels.activation = ActivationKernel::unfused;
  EXPECT_EQ(kept(plan, Section::dense_layer), fused);
}

// While the loss runs: 16-bit logits, their fp32 cast and the fp32 softmax, 10 bytes a logit; the softmax stays. The
// fp32_logits loss keeps as much but never holds a second fp32 copy: 6 bytes.
TEST(LossKernel, Fp32SoftmaxHoldsTwoFp32CopiesAndKeepsOne) {
  Plan plan = llama3_8b(8192);
  const auto head = [&](LossKernel kernel) {
    plan.kernels.loss = kernel;
    const OpList list = section_ops(plan, Section::head, single_document_work(plan));
    const KeptSet set = kept_tensors(plan, list, Recompute::none, 0);
    return std::pair(set.bytes(), transient_peak(list, set).forward);
  };
  const auto [logits_kept, logits_peak] = head(LossKernel::fp32_logits);
  const auto [softmax_kept, softmax_peak] = head(LossKernel::fp32_softmax);
  EXPECT_EQ(softmax_kept, logits_kept);
  EXPECT_EQ((softmax_peak - logits_peak).value, 4LL * 8192 * 128256);
}

// Positions of 8192 tokens and the rotations of 128 values a position, fp32, are there already.
TEST(LibraryWorkspace, LiesBesideTheRunsConstants) {
  Plan plan = llama3_8b(8192);
  EXPECT_EQ(constant_bytes(plan).value, 4LL * 8192 + 4LL * 8192 * 128);
  plan.memory.workspace = Bytes(64 << 20);
  EXPECT_EQ(constant_bytes(plan).value, 4LL * 8192 + 4LL * 8192 * 128 + 67108864);
}

}  // namespace
}  // namespace reckon
