// Executes one section's op list (embedding, a layer, the head) forward and backward for one micro-batch. Tensors live
// exactly as long as the list and the plan's policy say (plan/memory_events.h), so that counted bytes equal predicted
// ones.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <vector>

#include "plan/kept_tensors.h"
#include "plan/layer_ops.h"
#include "runtime/train/op_call.h"
#include "runtime/train/retention.h"
#include "runtime/train/saved_activations.h"

namespace reckon {

/// A section's list with everything that follows from it and the policy; shared by the layers that are alike.
struct SectionLists {
  Section section;
  OpList list;
  KeptSet kept;
  std::vector<int> root;                  // by tensor: the storage that it lies in
  std::vector<std::vector<int>> aliases;  // by storage name: tensors under that name
  std::vector<int> last_use;              // by root: last op that touches it in forward
  int result = -1;                        // tensor that goes to the next section; -1 for the head
  Retention retention;                    // of the forward pass
  std::optional<Retention> rerun;         // of a forward pass that runs again as a whole, before backward
  std::vector<StepTimer::Component> forward_component, backward_component, recompute_component;  // by op
  StepTimer::Component encode_component, decode_component;

  /// Throws ConfigError naming the key when an op of the list cannot be executed yet.
  SectionLists(const RankModel& model, Section section, Recompute recompute, int stage);
};

class SectionRunner {
 public:
  /// `number` tells this section from all others of the model: it seeds stochastic rounding.
  SectionRunner(const RankModel& model, std::shared_ptr<const SectionLists> lists, std::int64_t number)
      : model_(model), lists_(std::move(lists)), number_(number) {}

  const OpList& list() const { return lists_->list; }
  /// Gives the ops their weights (and, for backward, gradients), by op; empty lets go of them.
  void bind(std::vector<OpParameters> parameters) { parameters_ = std::move(parameters); }

  /// Consumes the input and returns the section's output (the head's is undefined: its loss is in the batch).
  at::Tensor forward(at::Tensor input, MicroBatch& batch, SavedActivations& saved) const;
  /// Consumes the saved tensors and the output gradient; returns the input gradient (undefined for the embedding).
  at::Tensor backward(at::Tensor output_gradient, MicroBatch& batch, SavedActivations& saved) const;

 private:
  class BackwardPass;
  using Values = std::vector<at::Tensor>;  // by tensor; undefined = not there

  void run_forward(std::size_t op, MicroBatch& batch, Values& values, const std::vector<char>& stays, bool again) const;
  /// Runs every op and lets each storage go, or keeps what `retention` says, after its last use.
  void run_all(MicroBatch& batch, Values& values, const Retention& retention, int handed_on, SavedActivations& saved,
               bool again) const;
  void retire(int root, Values& values, const Retention& retention, int handed_on, const MicroBatch& batch,
              SavedActivations& saved) const;
  void keep_apart(const KeptTensor& kept, const Values& values, const MicroBatch& batch, SavedActivations& saved) const;

  const RankModel& model_;
  std::shared_ptr<const SectionLists> lists_;
  std::vector<OpParameters> parameters_;  // by op
  std::int64_t number_;
};

}  // namespace reckon
