// A legal plan that the runtime cannot carry out yet is refused with the key, never carried out differently.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "plan/errors.h"
#include "runtime/train/input/executable.h"
#include "tests/train/small_plan.h"

namespace reckon {
namespace {

using testing::small_plan;

void expect_refused(const std::string& key, const std::function<void(Plan&)>& change) {
  Plan plan = small_plan();
  EXPECT_NO_THROW(require_executable(plan));
  change(plan);
  try {
    require_executable(plan);
    ADD_FAILURE() << key << " was accepted";
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.diagnostics().size(), 1u);
    EXPECT_EQ(error.diagnostics()[0].key, key);
    EXPECT_GT(error.diagnostics()[0].message.size(), 20u) << "no sentence";
  }
}

TEST(Executable, RefusesWhatItCannotDoYetByKey) {
  expect_refused("model", [](Plan& plan) { plan.model.moe.experts = 4; });
  expect_refused("model", [](Plan& plan) { plan.model.position = Position::alibi; });
  expect_refused("model", [](Plan& plan) { plan.model.rope_scaling = "yarn"; });
  expect_refused("model", [](Plan& plan) { plan.model.attention_softcap = 50; });
  expect_refused("model", [](Plan& plan) { plan.model.logit_softcap = 30; });
  expect_refused("model", [](Plan& plan) { plan.model.qk_norm_full = true; });
  expect_refused("memory.limit", [](Plan& plan) { plan.hardware.context = plan.hardware.device.memory + Bytes(1); });
  expect_refused("precision.compute", [](Plan& plan) { plan.precision.compute = NumberFormat::fp8_e4m3; });
  expect_refused("gradients.reduce", [](Plan& plan) { plan.gradients.reduce = GradientReduce::all_to_all_sum; });
  expect_refused("optimizer.states", [](Plan& plan) { plan.optimizer.states = NumberFormat::bf16; });
}

TEST(Executable, NamesEveryRefusedKeyAtOnce) {
  Plan plan = small_plan();
  plan.model.position = Position::alibi;
  plan.optimizer.states = NumberFormat::bf16;
  try {
    require_executable(plan);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.diagnostics().size(), 2u);
  }
}

}  // namespace
}  // namespace reckon
