// recompute_layers: auto takes the fewest layers that fit. With a limit between the needs of N and of N - 1 recomputed
// layers it says N, N trains, and N - 1 really does not.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "cost_model/memory.h"
#include "cost_model/predict.h"
#include "plan/errors.h"
#include "tests/train/small_plan.h"

namespace reckon {
namespace {

using testing::on_ranks;

Plan limited_plan(Recompute mode) {
  Plan plan = testing::small_plan();
  plan.model.hidden = 64;
  plan.model.ffn_hidden = 176;
  plan.model.head_dim = 16;
  plan.model.layers = 5;
  plan.batch = {64, 2, 4};
  plan.activations.recompute = mode;
  return plan;
}

Bytes need_with(Plan plan, std::int64_t layers) {
  plan.activations.recompute_layers = {layers};
  return predict_memory(resolve(plan)).at(0).memory.peak_allocated;
}

void train_two_steps(const Plan& plan) {
  on_ranks(plan, [](RankTrainer& trainer, int, MemoryAccount&) {
    trainer.step(0);
    trainer.step(1);
  });
}

class RecomputeLimit : public ::testing::TestWithParam<Recompute> {};

TEST_P(RecomputeLimit, AutoTakesTheFewestLayersThatFitAndOneLessFails) {
  const Plan plan = limited_plan(GetParam());
  int tried = 0;
  for (std::int64_t layers = 1; layers <= plan.model.layers; ++layers) {
    const Bytes need = need_with(plan, layers), more = need_with(plan, layers - 1);
    if (need >= more) continue;  // the peak lies where recomputing this layer saves nothing
    ++tried;
    SCOPED_TRACE(std::to_string(layers) + " layers");
    Plan limited = plan;
    limited.memory.limit = Bytes((need.value + more.value) / 2);
    const Plan chosen = resolve(limited);
    EXPECT_EQ(chosen.activations.recompute_layers, std::vector<std::int64_t>{layers});
    EXPECT_NO_THROW(train_two_steps(chosen));
    Plan fewer = chosen;
    fewer.activations.recompute_layers = {layers - 1};
    try {
      train_two_steps(fewer);
      ADD_FAILURE() << "trained in " << limited.memory.limit->value << " bytes, predicted are " << more.value;
    } catch (const RunError& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::does_not_fit) << error.what();
    }
  }
  EXPECT_GE(tried, 3);
}

INSTANTIATE_TEST_SUITE_P(Modes, RecomputeLimit, ::testing::Values(Recompute::elementwise, Recompute::full));

}  // namespace
}  // namespace reckon
