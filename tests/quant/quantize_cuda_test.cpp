// CPU and device give the same bytes. Needs a build with CUDA and a device; tests/quant/quant_kernels_test.cpp covers
// the kernels' arithmetic and index mapping without.
#include "runtime/quant/quantize_cuda.h"

#include <gtest/gtest.h>

#include "plan/errors.h"

namespace reckon {
namespace {

TEST(QuantizeCuda, SaysWhatIsMissingInABuildWithoutIt) {
  if (cuda_quantization_is_built_in()) GTEST_SKIP() << "this build has the CUDA kernels";
  float value = 1.0f;
  std::byte bytes[4];
  EXPECT_THROW(quantize_cuda(&value, 1, Storage{NumberFormat::int4}, {}, bytes, nullptr), RunError);
}

}  // namespace
}  // namespace reckon
