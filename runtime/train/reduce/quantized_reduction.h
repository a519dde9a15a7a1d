// Sums gradients over a group with few bits on the wire and FP32 arithmetic (AGoQ, arXiv 2605.00539; ZeRO++'s qgZ,
// arXiv 2306.10209): quantize, all-to-all of the bytes, sum of the dequantized parts in FP32 and rank order, quantize
// again, all-gather. Every element is quantized exactly twice however many ranks there are. With sharded gradients
// (ZeRO) the second half is left out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/number_format.h"
#include "runtime/comm/communicator.h"
#include "runtime/quant/quantize_place.h"
#include "runtime/train/reduce/reduction_parts.h"

namespace reckon {

/// Elements of each rank's part: whole blocks, as even as possible, so that scales travel with their data. Late ranks
/// get fewer or none where there are not enough blocks.
std::vector<std::int64_t> block_parts(std::int64_t elements, int ranks, int block);

/// Bytes of quantized numbers that a reduction holds at once: those it sends and those it receives.
Bytes reduction_workspace(Storage wire, const std::vector<std::int64_t>& parts);

/// One reduction of one buffer. Calls in this order, other calls of the group in between as long as all ranks make them
/// in the same order: start, reduce, and for the whole sum start_gather, finish_gather.
class QuantizedReduction {
 public:
  /// `parts[r]` elements belong to rank r. `workspace` [at least reduction_workspace] is used until the end. Throws
  /// ConfigError for a format that cannot be quantized.
  QuantizedReduction(Communicator& group, Storage wire, std::vector<std::int64_t> parts, std::span<std::byte> workspace,
                     QuantizePlace place = {});

  /// Quantizes `gradients` [sum of parts] part by part and sends each to its owner. The gradients are free afterwards.
  void start(std::span<const float> gradients, const QuantizeOptions& options);
  /// Waits; own_sum [parts[rank]] = sum over ranks in FP32.
  OperationTime reduce(std::span<float> own_sum);

  /// Quantizes the own part again and sends it to all; `own_sum` becomes what the others will see, so that an optimizer
  /// that works on shards (ZeRO) gets the bits of one that works on the whole sum.
  void start_gather(std::span<float> own_sum);
  /// Waits for the gather. The parts of the whole sum can be read until the next start.
  OperationTime finish_gather() { return pending_.wait(); }
  /// values [parts[rank]] = the sum of that rank's part, after finish_gather.
  void read_part(int rank, std::span<float> values) const;

  /// The call under way, for waiting with a clock of one's own.
  Handle& pending() { return pending_; }

  /// The rounding of start_gather alone, nothing sent: for shards that are not gathered.
  void round_as_gathered(std::span<float> own_sum);

 private:
  std::int64_t own_elements() const { return parts_.elements[static_cast<std::size_t>(group_.rank())]; }
  std::int64_t own_bytes() const { return parts_.bytes[static_cast<std::size_t>(group_.rank())]; }
  QuantizeOptions second_rounding() const;

  Communicator& group_;
  Storage wire_;
  QuantizePlace place_;  // of all buffers
  ReductionParts parts_;
  QuantizeOptions options_;
  std::span<std::byte> sent_, received_;
  Handle pending_;
};

}  // namespace reckon
