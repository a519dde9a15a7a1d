// The update of this rank's shard of weights, after which every rank has the new weights; the norm that clipping needs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plan/optimizer_states.h"
#include "plan/plan.h"
#include "runtime/checkpoint/narrow_moments.h"
#include "runtime/train/group_calls.h"
#include "runtime/train/narrow_moment_blocks.h"
#include "runtime/train/parameter_store.h"
#include "runtime/train/rank_groups.h"

namespace reckon {

/// Learning rate of step `step` (from 0): linear warm-up over warmup_steps, then constant, or linear or cosine decay to
/// minimum_learning_rate at the last step.
double learning_rate(const OptimizerSpec& optimizer, std::int64_t step, std::int64_t steps);

class Optimizer {
 public:
  /// With ZeRO the states cover this rank's shard only, unit by unit.
  Optimizer(const Plan& plan, ParameterStore& store, const RankGroups& groups, StepTimer& timer);

  /// This rank's share of the squared norm of all gradients: over all ranks of the world every weight is counted once.
  /// The shares are cut alike with and without ZeRO, so that their sum in rank order is the same to the bit.
  double squared_norm_share();
  /// One update with gradients scaled by `gradient_scale`; `step` counts from 1.
  void update(std::int64_t step, double rate, double gradient_scale);

  // What a checkpoint keeps of every weight (optimizer_states.cpp).

  /// "weight" in FP32, then "first_moment" and "second_moment" of AdamW.
  std::vector<std::string> state_names() const;
  /// Ranges of the flat buffer whose states this rank keeps; and the part that it alone of all ranks counts.
  std::vector<FlatRange> kept_ranges() const;
  std::vector<FlatRange> counted_ranges() const;
  /// How the moments of element `first` are stored: the block in which it lies where they are in 8 bits.
  BlockPlace moment_blocks(std::int64_t first) const;
  /// Values of `name` from `first` on, inside one kept range and one tensor; codes where moments are in 8 bits. A new
  /// "weight" is also this rank's weight to compute with.
  void read_state(const std::string& name, std::int64_t first, std::span<float> into) const;
  void write_state(const std::string& name, std::int64_t first, std::span<const float> from);
  /// Moments in 8 bits: scales of the blocks that `count` elements touch; new ones, of which all other were never set.
  std::vector<float> read_scales(const std::string& name, std::int64_t first, std::int64_t count) const;
  void write_narrow(const std::string& name, std::int64_t first, const ReadMoments& from);
  /// Every rank gets the weights that others update. All ranks call it together.
  void gather_weights();

 private:
  /// A part of a unit that this rank updates; all of the buffer at once where nothing divides it.
  struct Piece {
    FlatRange range;                 // of the flat buffer
    std::int64_t place = 0;          // in the master weights
    std::vector<FlatRange> counted;  // what this rank adds to the norm
  };
  /// A part of a piece whose moments are stored alike.
  struct Run {
    StateRun states;
    std::size_t piece = 0;
    std::int64_t place = 0;  // in the wide moments, or the codes of the narrow ones
    std::int64_t block = 0;  // narrow: its first scale
  };
  struct Moment {
    at::Tensor wide;           // fp32
    at::Tensor codes, scales;  // 8 bits, and fp32 by block
  };

  void add_pieces(const Plan& plan, const RankGroups& groups);
  void add_runs(const Plan& plan);
  void make_states(const Plan& plan);
  at::Tensor weights_of(const Piece& piece) const;
  void update(const Run& run, std::int64_t step, double rate, float gradient_scale, const at::Tensor& piece_gradient);
  /// `count` elements from `first` of the flat buffer on, in one of the states in FP32.
  at::Tensor state(const std::string& name, std::int64_t first, std::int64_t count) const;
  const Piece& piece_of(std::int64_t first) const;
  const Run& run_of(std::int64_t first) const;
  const Moment& moment(const std::string& name) const { return name == "first_moment" ? first_ : second_; }

  const OptimizerSpec spec_;
  const std::uint64_t seed_;
  const std::int64_t block_;  // elements that share a scale of narrow moments
  ParameterStore& store_;
  GroupCalls* shard_;  // null without ZeRO or with one shard
  StepTimer& timer_;
  StepTimer::Component component_;
  std::vector<Piece> pieces_;
  std::vector<Run> runs_;
  std::int64_t count_ = 0;                           // weights that this rank updates
  std::int64_t wide_ = 0, narrow_ = 0, blocks_ = 0;  // moments by storage, and blocks of the narrow ones
  at::Tensor master_;                                // fp32 weights, where compute precision is lower
  Moment first_, second_;                            // second: narrow codes are of its root
};

}  // namespace reckon
