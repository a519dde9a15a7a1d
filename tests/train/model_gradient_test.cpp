// The whole model, executed section by section from the op lists, against autograd: loss and the gradient of every
// weight.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/train/reference_model.h"
#include "tests/train/small_plan.h"

namespace reckon {
namespace {

using testing::by_name;
using testing::on_ranks;
using testing::ReferenceModel;
using testing::small_plan;

/// Tokens and targets of one step's whole batch, [global_batch, length] int64.
std::pair<at::Tensor, at::Tensor> whole_batch(const Plan& plan, std::int64_t step) {
  const TokenStream stream(plan);
  const std::int64_t length = plan.batch.sequence_length;
  at::Tensor rows = at::empty({plan.batch.global_batch, length + 1}, at::kInt);
  for (std::int64_t row = 0; row < rows.size(0); ++row)
    stream.read(step, row, {rows[row].data_ptr<std::int32_t>(), static_cast<std::size_t>(length + 1)});
  rows = rows.to(at::kLong);
  return {rows.slice(1, 0, length).contiguous(), rows.slice(1, 1).contiguous()};
}

void expect_loss_and_gradients_of_autograd(Plan plan) {
  plan.precision.compute = plan.activations.stored = NumberFormat::fp64;
  std::map<std::string, at::Tensor> weights, gradients;
  double loss = 0;
  on_ranks(plan, [&](RankTrainer& trainer, int, MemoryAccount&) {
    const c10::InferenceMode normal(false);  // the copies take part in autograd below
    weights = by_name(trainer.parameters(), trainer.parameters().weights());
    {
      const c10::InferenceMode inference;
      loss = trainer.forward_backward(0).loss;
    }
    gradients = by_name(trainer.parameters(), trainer.parameters().gradients());
  });
  const ReferenceModel reference(plan.model, weights);
  const auto [tokens, targets] = whole_batch(plan, 0);
  const double count = static_cast<double>(tokens.numel());
  const at::Tensor expected = reference.loss_sum(tokens, targets) / count;
  expected.backward();
  // FP64 rounding of some thousand additions; the rotary table is made in FP64 on both sides.
  EXPECT_NEAR(loss, expected.item<double>(), 1e-12);
  double largest = 0;
  for (const auto& [name, gradient] : gradients)
    largest = std::max(largest, reference.gradient(name).abs().max().item<double>());
  for (const auto& [name, gradient] : gradients) {
    const at::Tensor wanted = reference.gradient(name);
    // A key bias shifts all scores of a query alike, so without rotation its gradient is rounding only.
    if (!name.ends_with("k_proj.bias")) {
      EXPECT_GT(wanted.abs().max().item<double>(), 1e-6 * largest) << name;
    }
    EXPECT_LT((gradient - wanted).abs().max().item<double>(), 1e-12 * largest) << name;
  }
}

TEST(ModelGradient, LlamaAgreesWithAutograd) {
  expect_loss_and_gradients_of_autograd(small_plan());
}

TEST(ModelGradient, LlamaWithTiedTableAndBiasesAgreesWithAutograd) {
  Plan plan = small_plan();
  plan.model.tied_head = true;
  plan.model.qkv_bias = plan.model.projection_bias = plan.model.ffn_bias = true;
  expect_loss_and_gradients_of_autograd(plan);
}

TEST(ModelGradient, Gpt2StyleAgreesWithAutograd) {
  Plan plan = small_plan();
  ModelSpec& model = plan.model;
  model.norm = Norm::layer_norm;
  model.norm_bias = model.qkv_bias = model.projection_bias = model.ffn_bias = true;
  model.position = Position::learned;
  model.position_rows = 16;
  model.activation = Activation::gelu;
  model.gated_ffn = false;
  model.kv_heads = 4;
  model.tied_head = true;
  expect_loss_and_gradients_of_autograd(plan);
}

TEST(ModelGradient, OptStyleAgreesWithAutograd) {
  Plan plan = small_plan();
  ModelSpec& model = plan.model;
  model.norm = Norm::layer_norm;
  model.norm_bias = model.qkv_bias = model.projection_bias = model.ffn_bias = true;
  model.position = Position::learned;
  model.position_offset = 2;
  model.position_rows = 14;  // the last position uses the last row
  model.activation = Activation::relu;
  model.gated_ffn = false;
  model.tied_head = true;
  expect_loss_and_gradients_of_autograd(plan);
}

TEST(ModelGradient, Qwen3StyleAgreesWithAutogradInEveryRecomputeMode) {
  for (const Recompute mode : {Recompute::none, Recompute::elementwise, Recompute::full}) {
    Plan plan = small_plan();
    plan.model.qk_norm = true;
    plan.model.tied_head = true;
    plan.activations.recompute = mode;
    expect_loss_and_gradients_of_autograd(plan);
  }
}

TEST(ModelGradient, EverySchedulesOrderOfOneStageGivesTheSameGradients) {
  for (const ScheduleKind schedule : {ScheduleKind::gpipe, ScheduleKind::one_forward_one_backward}) {
    Plan plan = small_plan();
    plan.batch = {12, 1, 3};
    plan.parallel.schedule = schedule;
    expect_loss_and_gradients_of_autograd(plan);
  }
}

TEST(ModelGradient, EveryRecomputeModeAgreesWithAutograd) {
  for (const Recompute mode : {Recompute::elementwise, Recompute::selective, Recompute::full}) {
    Plan plan = small_plan();
    plan.activations.recompute = mode;
    expect_loss_and_gradients_of_autograd(plan);
  }
}

}  // namespace
}  // namespace reckon
