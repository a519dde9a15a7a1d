// From the gradients of one section and micro-batch to the sums over all micro-batches and replicas that the optimizer
// reads (docs/data_parallelism.md).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/train/flat_window.h"
#include "runtime/train/parameter_store.h"
#include "runtime/train/rank_groups.h"

namespace reckon {

/// The weights that a section's ops read.
struct SectionUnits {
  std::int64_t first_offset = 0;    // place of its first weight in the flat buffer
  std::vector<FlatRange> held;      // units of the section itself
  std::vector<FlatRange> borrowed;  // a tied table that the embedding of the same stage holds

  std::vector<FlatRange> all() const;
};
/// Elements of every unit of a rank.
std::vector<std::int64_t> unit_sizes(const ParameterLayout& layout);
SectionUnits section_units(const ParameterLayout& layout, std::int64_t layer, const std::vector<OpPlaces>& places);

class GradientAccumulation {
 public:
  virtual ~GradientAccumulation() = default;

  virtual void begin_step(std::int64_t step) = 0;
  /// Where the backward pass of a section adds its weights' gradients.
  virtual std::vector<FlatWindow> open(const SectionUnits& section) = 0;
  /// The pass is over. Sections close in the same order on all replicas.
  virtual void close(const SectionUnits& section, bool last_micro_batch) = 0;
  /// The backward pass of a virtual stage is over.
  virtual void end_backward() = 0;
  /// All passes of the step are over: waits until the main gradients hold the sums over replicas and tied tables, of
  /// all weights or, with ZeRO, of this rank's shard.
  virtual void finish() = 0;
};

/// All arguments must outlive it.
std::unique_ptr<GradientAccumulation> make_gradient_accumulation(const Plan& plan, ParameterStore& store,
                                                                 const RankGroups& groups, StepTimer& timer);

}  // namespace reckon
