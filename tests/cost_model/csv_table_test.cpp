#include "cost_model/csv_table.h"

#include <gtest/gtest.h>

#include "plan/errors.h"

namespace reckon {
namespace {

TEST(CsvTable, QuotesCommasAndLineBreaksInCells) {
  const CsvTable table = CsvTable::parse("a,b,c\r\n1,\"x, \"\"y\"\"\nz\",3\r\n\n4,,6", "t.csv");
  ASSERT_EQ(table.rows(), 2u);
  EXPECT_EQ(table.cell(0, "b"), "x, \"y\"\nz");
  EXPECT_EQ(table.cell(0, "c"), "3");
  EXPECT_EQ(table.cell(1, "b"), "");
  EXPECT_EQ(table.cell(1, "missing"), "");
  EXPECT_EQ(table.count(1, "c"), 6);
}

TEST(CsvTable, ShortRowsHaveEmptyCellsLongOnesAreRefused) {
  EXPECT_EQ(CsvTable::parse("a,b\n1\n", "t.csv").cell(0, "b"), "");
  try {
    CsvTable::parse("a,b\n1,2\n1,2,3\n", "t.csv");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.diagnostics().front().line, 3);
  }
}

TEST(CsvTable, FillWritesEmptyCellsMapReplacesValues) {
  CsvTable table = CsvTable::parse("a,b\n1,\n2,x\n", "t.csv");
  table.fill("b", "y");
  table.fill("new", "7");
  table.map("a", "2", "9");
  EXPECT_EQ(table.cell(0, "b"), "y");
  EXPECT_EQ(table.cell(1, "b"), "x");
  EXPECT_EQ(table.cell(1, "new"), "7");
  EXPECT_EQ(table.cell(1, "a"), "9");
}

TEST(CsvTable, AnEmptyFileIsRefused) {
  EXPECT_THROW(CsvTable::parse("", "t.csv"), ConfigError);
}

TEST(CsvTable, AColumnGivenTwiceIsRefused) {
  EXPECT_THROW(CsvTable::parse("a,b,a\n1,2,3\n", "t.csv"), ConfigError);
}

}  // namespace
}  // namespace reckon
