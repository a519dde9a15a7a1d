// A part of a tensor and where its elements lie in the whole one, so that parts cut in one way can be put together in
// any other: tensor parallelism cuts rows or columns, ZeRO cuts what is left at any element.
#pragma once

#include <cstdint>
#include <vector>

namespace reckon {

/// Elements [first, first + count), row by row, of the block of `rows` x `columns` at (`row`, `column`) of a tensor
/// with `whole_columns` columns. A tensor of one dimension has one column.
struct TensorRegion {
  std::int64_t whole_columns = 1;
  std::int64_t row = 0, column = 0, rows = 0, columns = 1;
  std::int64_t first = 0, count = 0;

  bool operator==(const TensorRegion&) const = default;
};

/// Elements that follow each other in the region and in the whole tensor.
struct TensorRun {
  std::int64_t in_whole, in_region, count;  // in_region: from the region's first element

  bool operator==(const TensorRun&) const = default;
};

/// The region's runs in the order of the whole tensor.
std::vector<TensorRun> runs_of(const TensorRegion& region);

/// The elements that two regions of one tensor share: in_region counts from the first element of each.
struct SharedRun {
  std::int64_t in_a, in_b, count;
};
std::vector<SharedRun> shared_runs(const std::vector<TensorRun>& a, const std::vector<TensorRun>& b);

}  // namespace reckon
