#include "runtime/train/narrow_moment_blocks.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace reckon {
namespace {

using Values = std::vector<float>;

/// A run of six elements in blocks of four.
template <class Code>
struct OneRun {
  std::array<Code, 6> codes{};
  std::array<float, 2> scales{};

  MomentBlocks<Code> blocks() { return {codes, scales, 4}; }
  void put(std::int64_t first, const Values& values, const Values& codes_read, const Values& scales_read) {
    put_moments(blocks(), first, {values, codes_read, scales_read});
  }
};

TEST(NarrowMomentBlocks, OneScaleABlockIsKeptToTheBit) {
  OneRun<std::int8_t> run;
  run.put(0, Values(5), {127, -3, 0, 5, 100}, {0.1f, 0.1f, 0.1f, 0.1f, 0.3f});
  run.put(5, Values(1), {-100}, {0.3f});  // the rest of the second block
  EXPECT_EQ(run.codes, (std::array<std::int8_t, 6>{127, -3, 0, 5, 100, -100}));
  EXPECT_EQ(run.scales, (std::array<float, 2>{0.1f, 0.3f}));
}

// Scales 0.25 and 1 in one block: 100 x 0.25 = 25 codes of 1, and 2 x 0.25 = 0.5 is halfway, to even 0.
TEST(NarrowMomentBlocks, TwoScalesABlockBecomeTheLarger) {
  OneRun<std::int8_t> small_first, large_first;
  small_first.put(0, Values(4), {100, 2, -7, 50}, {0.25f, 0.25f, 1, 1});
  large_first.put(2, Values(2), {-7, 50}, {1, 1});
  large_first.put(0, Values(2), {100, 2}, {0.25f, 0.25f});
  EXPECT_EQ(small_first.codes, (std::array<std::int8_t, 6>{25, 0, -7, 50}));
  EXPECT_EQ(small_first.codes, large_first.codes);
  EXPECT_EQ(small_first.scales[0], 1.0f);
}

TEST(NarrowMomentBlocks, ARootAboveZeroStaysAboveZero) {
  OneRun<std::uint8_t> run;
  run.put(0, Values(4), {255, 1, 0, 200}, {0.001f, 0.001f, 0.001f, 1});
  EXPECT_EQ(run.codes, (std::array<std::uint8_t, 6>{1, 1, 0, 200}));  // 0.255, 0.001, 0 and 200
}

TEST(NarrowMomentBlocks, Fp32ValuesGetTheScaleOfTheirLargest) {
  OneRun<std::int8_t> first;
  first.put(0, {1, -127, 0.4f, 0}, Values(4), Values(4));
  EXPECT_EQ(first.codes, (std::array<std::int8_t, 6>{1, -127, 0, 0}));
  EXPECT_EQ(first.scales[0], 1.0f);
  OneRun<std::uint8_t> root;
  root.put(0, {255 * 255, 4, 1e-12f, 0}, Values(4), Values(4));  // second moments: their roots are coded
  EXPECT_EQ(root.codes, (std::array<std::uint8_t, 6>{255, 2, 1, 0}));
}

}  // namespace
}  // namespace reckon
