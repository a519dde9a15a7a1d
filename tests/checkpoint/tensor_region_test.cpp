// Parts of tensors against a table that says of every element of the whole where it lies.
#include "runtime/checkpoint/tensor_region.h"

#include <gtest/gtest.h>

#include <random>

namespace reckon {
namespace {

TEST(TensorRegion, WholeRowsAreOneRun) {
  // Rows 2 to 4 of 6 x 3, without their first and last two elements: 9 - 3 = 6 elements from element 7 of the whole.
  const TensorRegion region{3, 2, 0, 3, 3, 1, 6};
  EXPECT_EQ(runs_of(region), (std::vector<TensorRun>{{7, 0, 6}}));
}

TEST(TensorRegion, ColumnsAreOneRunARow) {
  // Columns 1 and 2 of 3 x 4, from the second element of the block: 2 | 5 6 | 9 of the whole.
  const TensorRegion region{4, 0, 1, 3, 2, 1, 4};
  EXPECT_EQ(runs_of(region), (std::vector<TensorRun>{{2, 0, 1}, {5, 1, 2}, {9, 3, 1}}));
}

TEST(TensorRegion, NothingHasNoRuns) {
  EXPECT_TRUE(runs_of({4, 0, 0, 3, 4, 5, 0}).empty());
}

/// Element of the whole that is element `i` of the region, by its definition.
std::int64_t whole_index(const TensorRegion& r, std::int64_t i) {
  const std::int64_t at = r.first + i;
  return (r.row + at / r.columns) * r.whole_columns + r.column + at % r.columns;
}

TensorRegion random_region(std::mt19937& random, std::int64_t rows, std::int64_t columns) {
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
  TensorRegion r{columns, below(rows), below(columns), 0, 0, 0, 0};
  r.rows = 1 + below(rows - r.row);
  r.columns = 1 + below(columns - r.column);
  r.first = below(r.rows * r.columns);
  r.count = below(r.rows * r.columns - r.first + 1);
  return r;
}

TEST(TensorRegion, SharedElementsAreThoseWithTheSamePlaceInTheWhole) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 2000; ++trial) {
    const TensorRegion a = random_region(random, 5, 7), b = random_region(random, 5, 7);
    std::vector<std::pair<std::int64_t, std::int64_t>> expected, got;
    for (std::int64_t i = 0; i < a.count; ++i)
      for (std::int64_t j = 0; j < b.count; ++j)
        if (whole_index(a, i) == whole_index(b, j)) expected.emplace_back(i, j);
    for (const SharedRun& run : shared_runs(runs_of(a), runs_of(b)))
      for (std::int64_t i = 0; i < run.count; ++i) got.emplace_back(run.in_a + i, run.in_b + i);
    ASSERT_EQ(got, expected) << "trial " << trial;
  }
}

}  // namespace
}  // namespace reckon
