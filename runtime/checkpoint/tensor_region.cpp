#include "runtime/checkpoint/tensor_region.h"

#include <algorithm>

namespace reckon {

std::vector<TensorRun> runs_of(const TensorRegion& region) {
  std::vector<TensorRun> runs;
  const std::int64_t end = region.first + region.count;
  const bool whole_rows = region.columns == region.whole_columns;
  for (std::int64_t at = region.first; at < end;) {
    const std::int64_t row = at / region.columns, column = at % region.columns;
    const std::int64_t count = whole_rows ? end - at : std::min(end - at, region.columns - column);
    runs.push_back({(region.row + row) * region.whole_columns + region.column + column, at - region.first, count});
    at += count;
  }
  return runs;
}

std::vector<SharedRun> shared_runs(const std::vector<TensorRun>& a, const std::vector<TensorRun>& b) {
  std::vector<SharedRun> shared;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const std::int64_t first = std::max(a[i].in_whole, b[j].in_whole);
    const std::int64_t end_a = a[i].in_whole + a[i].count, end_b = b[j].in_whole + b[j].count;
    const std::int64_t end = std::min(end_a, end_b);
    if (first < end)
      shared.push_back({a[i].in_region + first - a[i].in_whole, b[j].in_region + first - b[j].in_whole, end - first});
    if (end_a <= end_b) ++i;
    else ++j;
  }
  return shared;
}

}  // namespace reckon
