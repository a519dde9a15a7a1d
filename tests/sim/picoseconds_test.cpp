#include "sim/picoseconds.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

namespace reckon {
namespace {

TEST(Picoseconds, AreRoundedAndRefuseTimesOutsideTheirRange) {
  EXPECT_EQ(to_picoseconds(Seconds(1.5e-12)).value, 2);
  EXPECT_EQ(to_picoseconds(Seconds(9e6)).value, 9'000'000'000'000'000'000);
  for (const double seconds : {1e7, -1e7, std::numeric_limits<double>::infinity(), std::nan("")})
    EXPECT_THROW(to_picoseconds(Seconds(seconds)), std::overflow_error) << seconds;
}

}  // namespace
}  // namespace reckon
