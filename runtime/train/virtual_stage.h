// The sections of one virtual pipeline stage on one rank: (embedding), layers, (head).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "runtime/train/gradient_accumulation.h"
#include "runtime/train/parameter_store.h"
#include "runtime/train/section.h"
#include "runtime/train/whole_weights.h"

namespace reckon {

/// A micro-batch on its way through a virtual stage: its tokens and what each section has kept.
struct StageActivations {
  MicroBatch batch;
  std::vector<SavedActivations> saved;  // by section
};

class VirtualStage {
 public:
  /// Virtual stage `chunk` * stages + stage of the plan. All arguments must outlive it.
  VirtualStage(const RankModel& model, const ParameterStore& store, GroupCalls* shard, GradientAccumulation& gradients,
               std::int64_t chunk);

  bool is_first() const { return is_first_; }
  bool is_last() const { return is_last_; }

  /// `input` is undefined on the first stage; the output is undefined on the last.
  at::Tensor forward(at::Tensor input, StageActivations& activations);
  at::Tensor backward(at::Tensor output_gradient, StageActivations& activations, bool last_micro_batch);

 private:
  struct Part {
    SectionRunner run;
    std::vector<OpPlaces> places;
    SectionUnits units;
  };

  /// Starts making the weights of a section whole.
  WholeWeights weights_of(const Part& part) const { return {store_, shard_, part.units.all()}; }

  const ParameterStore& store_;
  GroupCalls* shard_;
  GradientAccumulation& gradients_;
  bool buffers_are_whole_;  // so sections stay bound to them
  bool is_first_, is_last_;
  std::vector<Part> parts_;
};

}  // namespace reckon
