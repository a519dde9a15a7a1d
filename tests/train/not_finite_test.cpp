// A step whose numbers are not finite ends the run before the weights are touched.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>

#include "plan/errors.h"
#include "tests/train/small_plan.h"

namespace reckon {
namespace {

using testing::on_ranks;
using testing::small_plan;

// Values of 1e38 behind a projection of zeros: the output and with it the loss are finite, but the projection's
// gradient (output gradient times values) overflows once a large head scales the output gradient up.
void make_gradient_overflow(const ParameterStore& store) {
  for (const LocalParameter& parameter : store.layout().parameters) {
    at::Tensor weight = store.view(store.weights(), parameter);
    const std::string& name = parameter.whole.name;
    if (name.find("v_proj") != std::string::npos) weight.fill_(0).select(1, 0).fill_(3e37);
    if (name.find("o_proj") != std::string::npos) weight.fill_(0);
    if (name.find("lm_head") != std::string::npos) weight.mul_(1e6);
  }
}

TEST(NotFinite, AGradientEndsTheRunByName) {
  on_ranks(small_plan(), [](RankTrainer& trainer, int, MemoryAccount&) {
    make_gradient_overflow(trainer.parameters());
    const at::Tensor before = trainer.parameters().weights().clone();
    try {
      trainer.step(0);
      ADD_FAILURE() << "the step was made";
    } catch (const RunError& error) {
      EXPECT_NE(std::string(error.what()).find("gradient norm of step 1"), std::string::npos) << error.what();
    }
    EXPECT_TRUE(at::equal(trainer.parameters().weights(), before));
  });
}

}  // namespace
}  // namespace reckon
