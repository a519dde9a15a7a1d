#include "plan/optimizer_states.h"

#include <gtest/gtest.h>

#include "tests/support/small_plans.h"

namespace reckon {
namespace {

Plan small_states() {
  Plan plan = llama3_8b(512);
  plan.model.layers = 2;
  plan.optimizer.states = NumberFormat::int8;
  plan.model.hidden = 1024;  // norms of 1024 elements are small, everything else is not
  plan.model.heads = plan.model.kv_heads = 8;
  plan.model.ffn_hidden = 2048;
  plan.model.vocabulary = 4000;
  return plan;
}

TEST(StateRuns, CoverTheShardInOrderAndLeaveNormsWide) {
  for (const int zero : {0, 1, 3})
    for (const std::int64_t data : {1, 3}) {
      Plan plan = small_states();
      plan.parallel.zero = zero;
      plan.parallel.data = data;
      const ParameterLayout layout = parameter_layout(plan, {});
      std::int64_t wide = 0;
      for (std::int64_t shard = 0; shard < layout.shards; ++shard) {
        std::int64_t sum = 0, place = -1;
        for (const StateRun& run : state_runs(plan, layout, shard)) {
          EXPECT_GT(run.range.first, place);
          place = run.range.first;
          sum += run.range.count;
          wide += run.narrow ? 0 : run.range.count;
        }
        EXPECT_EQ(sum, layout.shard_elements);
      }
      EXPECT_GE(wide, 5 * 1024);  // two norms a layer, one before the head, and padding behind it
      EXPECT_LT(wide, 5 * 1024 + 6 * data);
    }
}

// Per moment: a byte an element and a float for each block of 128, blocks counted from the start of each run; norms 4.
TEST(StateRuns, MomentsTakeAByteAndTheirScales) {
  const Plan plan = small_states();
  const ParameterLayout layout = parameter_layout(plan, {});
  const std::int64_t narrow = layout.elements - 5 * 1024;  // every run is a multiple of 128 here
  EXPECT_EQ(moment_bytes(plan, layout).value, 2 * (narrow + narrow / 128 * 4 + 5 * 1024 * 4));
}

TEST(StateRuns, AnOptimizerWithoutMomentsHasNone) {
  Plan plan = small_states();
  plan.optimizer.kind = OptimizerKind::sgd;
  EXPECT_EQ(moment_bytes(plan, parameter_layout(plan, {})).value, 0);
}

}  // namespace
}  // namespace reckon
