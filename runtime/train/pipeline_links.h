// Messages between neighbouring virtual stages: outputs forward, their gradients back. Each direction has a
// communicator of its own, so that messages match in the order in which all ranks run forwards, and backwards.
//
// A rank sends its next message in a direction when the last one has been taken. So it runs ahead of its neighbour by
// one message at most, and what it holds does not depend on who is faster: one message a direction, from the start. No
// schedule waits for ever by that (tests/plan/pipeline_schedule_test.cpp).
#pragma once

#include <ATen/core/Tensor.h>

#include "runtime/train/rank_groups.h"
#include "runtime/train/rank_model.h"

namespace reckon {

class PipelineLinks {
 public:
  /// Both must outlive it.
  PipelineLinks(const RankModel& model, const RankGroups& groups);

  at::Tensor receive_input() { return receive(*groups_.stage_outputs, -1); }
  void send_output(const at::Tensor& output) { send(*groups_.stage_outputs, output, +1, last_output_); }
  at::Tensor receive_output_gradient() { return receive(*groups_.stage_gradients, +1); }
  void send_input_gradient(const at::Tensor& gradient) { send(*groups_.stage_gradients, gradient, -1, last_gradient_); }
  /// Waits until every message has arrived.
  void finish();

 private:
  /// A message on its way; its tensor is kept until the next one in its direction is sent.
  struct Sent {
    at::Tensor tensor;
    TimedCall call;
  };

  at::Tensor empty_message() const;
  at::Tensor receive(GroupCalls& group, int direction);
  void send(GroupCalls& group, const at::Tensor& tensor, int direction, Sent& last);
  /// The stage before (-1) or after (+1); the last is followed by the first (its next chunk).
  int neighbour(int direction) const;
  /// The rank at that stage with which this one exchanges messages.
  std::int64_t rank_of(int stage) const;

  const RankModel& model_;
  const RankGroups& groups_;
  Sent last_output_, last_gradient_;
};

}  // namespace reckon
