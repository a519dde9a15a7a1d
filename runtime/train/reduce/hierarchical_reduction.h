// The quantized sum of quantized_reduction.h over ranks on several nodes, inside each node first (ZeRO++'s two-hop qgZ,
// arXiv 2306.10209): all-to-all inside the node, FP32 sum, quantize, all-to-all between the ranks of equal place on all
// nodes, FP32 sum; for whole sums quantize, all-gather between nodes, all-gather inside. A node of g ranks sends 1/g of
// what a flat exchange sends to other nodes; every element is quantized once more.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/number_format.h"
#include "runtime/comm/communicator.h"
#include "runtime/quant/quantize_place.h"
#include "runtime/train/reduce/reduction_parts.h"

namespace reckon {

/// Bytes of quantized numbers held at once when `parts` are summed over nodes of `inside` ranks.
Bytes hierarchical_workspace(Storage wire, const std::vector<std::int64_t>& parts, int inside);

/// One reduction of one buffer. Calls in this order: start, send_between, reduce, and for the whole sum start_gather,
/// gather_inside, finish_gather. Rank g * node + place of the sum has place `place` in `inside` and `node` in `across`.
class HierarchicalReduction {
 public:
  /// `parts[r]` elements belong to rank r of the sum. `workspace` [at least hierarchical_workspace] is used until the
  /// end. Throws ConfigError for a format that cannot be quantized.
  HierarchicalReduction(Communicator& inside, Communicator& across, Storage wire, std::vector<std::int64_t> parts,
                        std::span<std::byte> workspace, QuantizePlace place = {});

  /// Quantizes `gradients` [sum of parts] part by part and sends each to the rank of its owner's place on this node.
  void start(std::span<const float> gradients, const QuantizeOptions& options);
  /// Waits; sums this place's parts over the node and sends each to its owner. `scratch` [largest part].
  void send_between(std::span<float> scratch);
  /// Waits; own_sum [parts[rank]] = sum over all ranks in FP32.
  void reduce(std::span<float> own_sum);

  /// Quantizes the own part again and sends it to the other nodes; `own_sum` becomes what the others will see.
  void start_gather(std::span<float> own_sum);
  /// Waits; sends what has come to the other ranks of this node.
  void gather_inside();
  /// Waits. The parts of the whole sum can be read until the next start.
  void finish_gather() { pending_.wait(); }
  /// values [parts[rank]] = the sum of that rank's part, after finish_gather.
  void read_part(int rank, std::span<float> values) const;

  /// The rounding of start_gather alone, nothing sent: for shards that are not gathered.
  void round_as_gathered(std::span<float> own_sum);

  /// The call under way, for waiting with a clock of one's own.
  Handle& pending() { return pending_; }

 private:
  std::size_t part_of(int node, int place) const { return static_cast<std::size_t>(node * inside_.size() + place); }
  std::size_t own_part() const { return part_of(across_.rank(), inside_.rank()); }
  /// Bytes of the parts of one place on all nodes, which travel together inside a node.
  std::int64_t place_bytes(int place) const;

  Communicator &inside_, &across_;
  Storage wire_;
  QuantizePlace place_;  // of all buffers
  ReductionParts parts_;
  QuantizeOptions options_;
  std::span<std::byte> sent_, received_;
  Handle pending_;
};

}  // namespace reckon
