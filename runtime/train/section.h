// Executes one section's op list (embedding, a layer, the head) forward and backward for one micro-batch. Tensors live
// exactly as long as the list says, so that counted bytes equal predicted ones.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "plan/kept_tensors.h"
#include "plan/layer_ops.h"
#include "runtime/train/op_call.h"
#include "runtime/train/saved_activations.h"

namespace reckon {

/// A section's list with everything that follows from it and the policy; shared by the layers that are alike.
struct SectionLists {
  Section section;
  OpList list;
  KeptSet kept;
  std::vector<int> root;         // by tensor: the tensor whose storage it shares, itself included
  std::vector<char> is_kept;     // by tensor: its storage is kept for backward
  std::vector<int> last_reader;  // by root: last op that touches it in forward; the result's is past the end
  std::vector<int> first_saver;  // by root: first op whose backward reads it, -1 if none
  std::vector<int> producer;     // by tensor: op that makes it, -1 for inputs
  bool recomputes_all = false;   // the whole section runs again before its backward pass
  std::vector<StepTimer::Component> forward_component, backward_component, recompute_component;  // by op

  /// Throws ConfigError naming the key when an op of the list cannot be executed yet.
  SectionLists(const RankModel& model, Section section, Recompute recompute, int stage);
};

class SectionRun {
 public:
  SectionRun(const RankModel& model, std::shared_ptr<const SectionLists> lists)
      : model_(model), lists_(std::move(lists)) {}

  const OpList& list() const { return lists_->list; }
  /// Gives the ops their weights (and, for backward, gradients), by op; empty lets go of them.
  void bind(std::vector<OpParameters> parameters) { parameters_ = std::move(parameters); }

  /// Consumes the input and returns the section's output (the head's is undefined: its loss is in the batch).
  at::Tensor forward(at::Tensor input, MicroBatch& batch, SavedActivations& saved) const;
  /// Consumes the saved tensors and the output gradient; returns the input gradient (undefined for the embedding).
  at::Tensor backward(at::Tensor output_gradient, MicroBatch& batch, SavedActivations& saved) const;

 private:
  /// Runs the ops again that make tensors which the backward pass of `op` reads.
  void restore_for(std::size_t op, MicroBatch& batch, std::vector<at::Tensor>& values) const;
  void restore(int tensor, MicroBatch& batch, std::vector<at::Tensor>& values) const;
  void run_forward(std::size_t op, MicroBatch& batch, std::vector<at::Tensor>& values, bool again) const;

  const RankModel& model_;
  std::shared_ptr<const SectionLists> lists_;
  std::vector<OpParameters> parameters_;  // by op
};

}  // namespace reckon
