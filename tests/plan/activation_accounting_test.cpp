#include "plan/activation_accounting.h"

#include <gtest/gtest.h>

#include "plan/kept_tensors.h"
#include "tests/support/small_plans.h"

namespace reckon {
namespace {

constexpr double kPaperFfn = 4, kLlama13bFfn = 13824.0 / 5120;

TEST(ActivationAccounting, ColumnsOfThePapersTable) {
  EXPECT_DOUBLE_EQ(layer_units(ActivationStack::megatron_unfused, kPaperFfn, 1).sum(), 28);
  EXPECT_DOUBLE_EQ(layer_units(ActivationStack::coat, kPaperFfn, 1).sum(), 16.5);
  EXPECT_DOUBLE_EQ(layer_units(ActivationStack::agoq, kPaperFfn, 1).sum(), 7.75);
}

TEST(ActivationAccounting, RowsOfThePapersTable) {
  const LayerUnits megatron = layer_units(ActivationStack::megatron_unfused, kPaperFfn, 1);
  EXPECT_DOUBLE_EQ(megatron.qkv, 1);
  EXPECT_DOUBLE_EQ(megatron.attention, 5);
  EXPECT_DOUBLE_EQ(megatron.projection, 1);
  EXPECT_DOUBLE_EQ(megatron.norms, 4);
  EXPECT_DOUBLE_EQ(megatron.ffn_input, 1);
  EXPECT_DOUBLE_EQ(megatron.activation, 12);
  EXPECT_DOUBLE_EQ(megatron.down_input, 4);
  const LayerUnits agoq = layer_units(ActivationStack::agoq, kPaperFfn, 1);
  EXPECT_DOUBLE_EQ(agoq.attention, 5);
  EXPECT_DOUBLE_EQ(agoq.projection, 0.25);
  EXPECT_DOUBLE_EQ(agoq.norms, 0.5);
  EXPECT_DOUBLE_EQ(agoq.activation, 2);
}

// 12 + 4r, 5.75 + 0.5r, 6 + 2k/a + 3r, 4 + 2k/a + 2r at r = 2.7
TEST(ActivationAccounting, Llama13bShape) {
  EXPECT_DOUBLE_EQ(layer_units(ActivationStack::megatron_unfused, kLlama13bFfn, 1).sum(), 22.8);
  EXPECT_DOUBLE_EQ(layer_units(ActivationStack::agoq, kLlama13bFfn, 1).sum(), 7.1);
  EXPECT_NEAR(layer_units(ActivationStack::fused, kLlama13bFfn, 1).sum(), 16.1, 1e-12);
  EXPECT_NEAR(layer_units(ActivationStack::lossless, kLlama13bFfn, 1).sum(), 11.4, 1e-12);
}

// The op list keeps the fused stack's tensors and, beside them, fp32 statistics of 4a + 8 bytes a token.
TEST(ActivationAccounting, FusedStackIsWhatTheOpListKeeps) {
  for (const Plan& plan : {llama2_13b(512), llama3_8b(512)}) {
    const OpList list = section_ops(plan, Section::dense_layer, single_document_work(plan));
    const std::int64_t statistics = 512 * (4 * plan.model.heads + 8);
    EXPECT_DOUBLE_EQ(static_cast<double>(kept_tensors(plan, list, Recompute::none, 0).bytes().value - statistics),
                     layer_bytes(ActivationStack::fused, plan.model, 512));
    EXPECT_DOUBLE_EQ(
        static_cast<double>(kept_tensors(plan, list, Recompute::elementwise, 0).bytes().value - statistics),
        layer_bytes(ActivationStack::lossless, plan.model, 512));
  }
}

}  // namespace
}  // namespace reckon
