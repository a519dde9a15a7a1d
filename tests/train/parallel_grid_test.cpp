// Tensor, sequence and pipeline parallelism with data parallelism and ZeRO against one rank: loss, every gradient and
// weights after five steps. Sharded sums differ from whole ones by the order of FP32 additions only.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/train/small_plan.h"

namespace reckon {
namespace {

using testing::on_ranks;
using testing::small_plan;

struct Outcome {
  std::vector<double> losses, norms;
  std::map<std::string, at::Tensor> gradients, weights;  // whole tensors
};

/// Puts a rank's slice into the whole tensor.
void place(std::map<std::string, at::Tensor>& whole, const LocalParameter& parameter, const at::Tensor& slice) {
  const std::vector<std::int64_t>& shape = parameter.whole.shape;
  at::Tensor& target = whole[parameter.whole.name];
  if (!target.defined()) target = at::zeros(shape, slice.options());
  const bool columns = parameter.whole.split == Split::columns;
  const std::int64_t dimension = columns ? 1 : 0;
  const bool is_whole = parameter.whole.split == Split::replicated;
  const std::int64_t first = is_whole ? 0 : parameter.first;
  const std::int64_t count = std::min(slice.size(dimension), shape[static_cast<std::size_t>(dimension)] - first);
  if (count > 0) target.narrow(dimension, first, count).copy_(slice.narrow(dimension, 0, count));
}

Outcome train(const Plan& plan, int steps) {
  Outcome outcome;
  std::mutex mutex;
  on_ranks(plan, [&](RankTrainer& trainer, int rank, MemoryAccount&) {
    const auto collect = [&](std::map<std::string, at::Tensor>& whole, const at::Tensor& buffer) {
      const std::lock_guard lock(mutex);
      if (trainer.groups().coordinates.data != 0) return;
      for (const LocalParameter& parameter : trainer.parameters().layout().parameters)
        place(whole, parameter, trainer.parameters().view(buffer, parameter));
    };
    for (int s = 0; s < steps; ++s) {
      StepResult step = trainer.forward_backward(s);
      if (s == 0 && plan.parallel.zero == 0) collect(outcome.gradients, trainer.parameters().gradients());
      trainer.update(s, step);
      if (rank != 0) continue;
      outcome.losses.push_back(step.loss);
      outcome.norms.push_back(step.gradient_norm);
    }
    collect(outcome.weights, trainer.parameters().weights());
  });
  return outcome;
}

double difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>() / b.abs().max().item<double>();
}

struct Case {
  std::string name;
  std::int64_t data = 1, tensor = 1, pipeline = 1, chunks = 1;
  bool sequence = false;
  int zero = 0;
  ScheduleKind schedule = ScheduleKind::one_forward_one_backward;
  bool tied = false;
  std::int64_t kv_heads = 2;
  Recompute recompute = Recompute::none;
};

Plan grid_plan(const Case& c) {
  Plan plan = small_plan();
  plan.model.layers = 4;
  plan.model.kv_heads = c.kv_heads;
  plan.model.tied_head = c.tied;
  plan.batch = {12, 1, 8};
  plan.parallel.data = c.data;
  plan.parallel.tensor = c.tensor;
  plan.parallel.pipeline = c.pipeline;
  plan.parallel.chunks = c.chunks;
  plan.parallel.sequence = c.sequence;
  plan.parallel.zero = c.zero;
  plan.parallel.schedule = c.schedule;
  plan.activations.recompute = c.recompute;
  return plan;
}

class ParallelGrid : public ::testing::TestWithParam<Case> {};

TEST_P(ParallelGrid, EqualsOneRank) {
  Case alone = GetParam();
  alone.data = alone.tensor = alone.pipeline = alone.chunks = 1;
  alone.sequence = false;
  alone.zero = 0;
  alone.schedule = ScheduleKind::one_forward_one_backward;
  alone.recompute = Recompute::none;
  const Outcome expected = train(grid_plan(alone), 5), got = train(grid_plan(GetParam()), 5);
  for (std::size_t step = 0; step < 5; ++step) {
    EXPECT_NEAR(got.losses[step], expected.losses[step], 1e-5 * expected.losses[step]);
    EXPECT_NEAR(got.norms[step], expected.norms[step], 1e-4 * expected.norms[step]);
  }
  for (const auto& [name, gradient] : got.gradients)
    EXPECT_LT(difference(gradient, expected.gradients.at(name)), 1e-5) << name;
  EXPECT_EQ(got.weights.size(), expected.weights.size());
  for (const auto& [name, weight] : got.weights) EXPECT_LT(difference(weight, expected.weights.at(name)), 1e-4) << name;
}

constexpr auto kGpipe = ScheduleKind::gpipe;
constexpr auto k1f1b = ScheduleKind::one_forward_one_backward;
constexpr auto kInterleaved = ScheduleKind::interleaved;

INSTANTIATE_TEST_SUITE_P(
    Plans, ParallelGrid,
    ::testing::Values(
        Case{"tensor2", 1, 2}, Case{"tensor4_replicated_kv", 1, 4},
        Case{"tensor2_kv1", 1, 2, 1, 1, false, 0, k1f1b, false, 1}, Case{"sequence2", 1, 2, 1, 1, true},
        Case{"sequence4_replicated_kv", 1, 4, 1, 1, true}, Case{"sequence2_tied", 1, 2, 1, 1, true, 0, k1f1b, true},
        Case{"pipeline2", 1, 1, 2}, Case{"pipeline4_gpipe", 1, 1, 4, 1, false, 0, kGpipe},
        Case{"pipeline3_uneven", 1, 1, 3}, Case{"pipeline2_tied", 1, 1, 2, 1, false, 0, k1f1b, true},
        Case{"pipeline2_interleaved", 1, 1, 2, 2, false, 0, kInterleaved},
        Case{"pipeline2_interleaved_tied", 1, 1, 2, 2, false, 0, kInterleaved, true}, Case{"data2_tensor2", 2, 2},
        Case{"data2_pipeline2", 2, 1, 2}, Case{"data2_pipeline2_zero1_tied", 2, 1, 2, 1, false, 1, k1f1b, true},
        Case{"data2_tensor2_pipeline2_zero1", 2, 2, 2, 1, true, 1},
        Case{"sequence2_recompute_full", 1, 2, 1, 1, true, 0, k1f1b, false, 2, Recompute::full},
        Case{"tensor2_pipeline2_elementwise", 1, 2, 2, 1, true, 0, k1f1b, false, 2, Recompute::elementwise}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace reckon
