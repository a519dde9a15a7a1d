#include <gtest/gtest.h>

#include <cmath>

#include "report/format_quantity.h"
#include "report/table.h"

namespace reckon {
namespace {

TEST(FormatQuantity, UnitsAreWrittenOut) {
  EXPECT_EQ(with_unit(Bytes(0)), "0 bytes");
  EXPECT_EQ(with_unit(Bytes(1536)), "1.500 KiB");
  EXPECT_EQ(with_unit(Bytes(std::int64_t(80) << 30)), "80.00 GiB");
  EXPECT_EQ(with_unit(Seconds(0.0)), "0 s");
  EXPECT_EQ(with_unit(Seconds(0.0123)), "12.30 ms");
  EXPECT_EQ(with_unit(Seconds(45.6e-6)), "45.60 us");
  EXPECT_EQ(signed_percent(0.0123), "+1.23 %");
  EXPECT_EQ(signed_percent(-0.5), "-50.0 %");
  EXPECT_EQ(signed_percent(0.0), "0 %");
  EXPECT_EQ(percent(std::nan("")), "-");
}

TEST(FormatQuantity, LargeNumbersAreGrouped) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(13015864320), "13,015,864,320");
  EXPECT_EQ(grouped(-1234567), "-1,234,567");
}

TEST(Table, ColumnsAlignAndLinesHaveNoTrailingSpaces) {
  Table table({"name", "value"});
  table.add({"a", "1"});
  table.add({"long name", "12345"});
  EXPECT_EQ(table.text({}),
            "name       value\n"
            "a              1\n"
            "long name  12345\n");
}

TEST(Table, AccentsCountAsOneColumn) {
  Table table({"x", "y"});
  table.add({"± 1", "2"});
  table.add({"abc", "3"});
  EXPECT_EQ(table.text({}), "x    y\n± 1  2\nabc  3\n");
}

TEST(Table, ColourAndBarsOnlyWhenTheStyleHasThem) {
  EXPECT_EQ(painted("x", Paint::bad, {}), "x");
  EXPECT_EQ(painted("x", Paint::bad, {.colour = true, .bars = false}), "\x1b[31mx\x1b[0m");
  EXPECT_EQ(bar(1.0, 4, {}), "");
  EXPECT_EQ(bar(0.5, 4, {.colour = false, .bars = true}), "██");
  EXPECT_EQ(bar(7.0, 2, {.colour = false, .bars = true}), "██");
}

}  // namespace
}  // namespace reckon
