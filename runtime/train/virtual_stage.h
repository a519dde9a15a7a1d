// The sections of one virtual pipeline stage on one rank: (embedding), layers, (head).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "runtime/train/parameter_store.h"
#include "runtime/train/section.h"

namespace reckon {

/// A micro-batch on its way through a virtual stage: its tokens and what each section has kept.
struct StageActivations {
  MicroBatch batch;
  std::vector<SavedActivations> saved;  // by section
};

class VirtualStage {
 public:
  /// Virtual stage `chunk` * stages + stage of the plan.
  VirtualStage(const RankModel& model, const ParameterStore& store, std::int64_t chunk);

  bool is_first() const { return is_first_; }
  bool is_last() const { return is_last_; }

  /// `input` is undefined on the first stage; the output is undefined on the last.
  at::Tensor forward(at::Tensor input, StageActivations& activations) const;
  /// `section_done` is called after each section with its model layer and the offset of its first weight: no weight of
  /// this virtual stage at or above it gets any more gradient from this micro-batch.
  using SectionDone = std::function<void(std::int64_t layer, std::int64_t offset)>;
  at::Tensor backward(at::Tensor output_gradient, StageActivations& activations, const SectionDone& section_done) const;

 private:
  struct Part {
    SectionRun run;
    std::int64_t layer, first_offset;  // model layer, place of its weights in the flat buffer
  };

  bool is_first_, is_last_;
  std::vector<Part> parts_;
};

/// Recompute mode of every layer of a stage: the plan's mode for the first recompute_layers layers, none for the
/// others.
Recompute layer_recompute(const Plan& plan, std::int64_t stage, std::int64_t layer_of_stage);

}  // namespace reckon
