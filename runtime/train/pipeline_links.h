// Messages between neighbouring virtual stages: outputs forward, their gradients back. Each direction has a
// communicator of its own, so that messages match in the order in which all ranks run forwards, and backwards.
#pragma once

#include <ATen/core/Tensor.h>

#include <deque>

#include "runtime/train/rank_groups.h"
#include "runtime/train/rank_model.h"

namespace reckon {

class PipelineLinks {
 public:
  /// Both must outlive it.
  PipelineLinks(const RankModel& model, const RankGroups& groups) : model_(model), groups_(groups) {}

  at::Tensor receive_input() { return receive(*groups_.stage_outputs, -1); }
  void send_output(const at::Tensor& output) { send(*groups_.stage_outputs, output, +1); }
  at::Tensor receive_output_gradient() { return receive(*groups_.stage_gradients, +1); }
  void send_input_gradient(const at::Tensor& gradient) { send(*groups_.stage_gradients, gradient, -1); }
  /// Waits until every message has arrived.
  void finish();

 private:
  at::Tensor receive(GroupCalls& group, int direction);
  void send(GroupCalls& group, const at::Tensor& tensor, int direction);
  /// The stage before (-1) or after (+1); the last is followed by the first (its next chunk).
  int neighbour(int direction) const;

  const RankModel& model_;
  const RankGroups& groups_;
  std::deque<TimedCall> sends_;
};

}  // namespace reckon
