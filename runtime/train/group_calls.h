// Collectives of one group on tensors, timed under "<group>.<collective>".
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "plan/collective.h"
#include "runtime/comm/communicator.h"
#include "runtime/train/step_timer.h"

namespace reckon {

ConstBufferView const_view(const at::Tensor& tensor);
BufferView mutable_view(const at::Tensor& tensor);

/// A call in flight that is waited for under its own component. Keeps its tensors alive.
class TimedCall {
 public:
  TimedCall() = default;
  TimedCall(Handle handle, StepTimer& timer, StepTimer::Component component, StepTimer::Component idle,
            std::vector<at::Tensor> tensors)
      : tensors_(std::move(tensors)), handle_(std::move(handle)), timer_(&timer), component_(component), idle_(idle) {}
  void wait() {
    if (timer_ != nullptr) timer_->wait(handle_, component_, idle_);
    tensors_.clear();
  }
  bool done() { return handle_.done(); }

 private:
  std::vector<at::Tensor> tensors_;  // before the handle: they must outlive the call
  Handle handle_;
  StepTimer* timer_ = nullptr;
  StepTimer::Component component_ = 0, idle_ = 0;
};

/// One group that this rank belongs to. All tensors are dense. Time until the last peer has made the same call counts
/// as "waiting", along the pipeline as "bubble".
class GroupCalls {
 public:
  GroupCalls(std::unique_ptr<Communicator> communicator, Group group, StepTimer& timer);

  int rank() const { return communicator_->rank(); }
  int size() const { return communicator_->size(); }
  Communicator& communicator() { return *communicator_; }

  TimedCall all_reduce(const at::Tensor& tensor, Reduction reduction = Reduction::sum);
  /// `whole` holds every rank's `part`, one after the other; `part` may lie in it.
  TimedCall all_gather(const at::Tensor& part, const at::Tensor& whole);
  TimedCall reduce_scatter(const at::Tensor& whole, const at::Tensor& part);
  /// Timed under "<purpose>.<collective>".
  TimedCall all_reduce(const at::Tensor& tensor, std::string_view purpose);
  TimedCall all_gather(const at::Tensor& part, const at::Tensor& whole, std::string_view purpose);
  TimedCall reduce_scatter(const at::Tensor& whole, const at::Tensor& part, std::string_view purpose);
  /// Part r of `sent` goes to rank r, part r of `received` comes from it.
  TimedCall all_to_all(const at::Tensor& sent, const at::Tensor& received);
  /// Waits for a call on `communicator()` that was made elsewhere.
  void wait(Handle& handle, std::string_view purpose, Collective collective);
  TimedCall send(const at::Tensor& tensor, int to);
  TimedCall receive(const at::Tensor& tensor, int from);

 private:
  TimedCall timed(Handle handle, std::string_view purpose, Collective collective, std::vector<at::Tensor> tensors);

  std::unique_ptr<Communicator> communicator_;
  std::string group_;
  StepTimer& timer_;
  StepTimer::Component idle_;  // waiting for a neighbouring pipeline stage is bubble
};

}  // namespace reckon
