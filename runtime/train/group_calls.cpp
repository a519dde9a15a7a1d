#include "runtime/train/group_calls.h"

#include <ATen/ATen.h>

#include <stdexcept>

namespace reckon {
namespace {

ElementType element_type(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kDouble: return ElementType::fp64;
    case at::kFloat: return ElementType::fp32;
    case at::kBFloat16: return ElementType::bf16;
    case at::kLong: return ElementType::int64;
    case at::kInt: return ElementType::int32;
    case at::kByte: return ElementType::uint8;
    default: throw std::logic_error("this tensor type is not communicated");
  }
}

}  // namespace

ConstBufferView const_view(const at::Tensor& tensor) {
  return {tensor.const_data_ptr(), tensor.numel(), element_type(tensor)};
}

BufferView mutable_view(const at::Tensor& tensor) {
  return {tensor.mutable_data_ptr(), tensor.numel(), element_type(tensor)};
}

GroupCalls::GroupCalls(std::unique_ptr<Communicator> communicator, Group group, StepTimer& timer)
    : communicator_(std::move(communicator)),
      group_(name_of(group)),
      timer_(timer),
      idle_(timer.component(group == Group::pipeline ? "bubble" : "waiting")) {}

TimedCall GroupCalls::timed(Handle handle, std::string_view purpose, Collective collective,
                            std::vector<at::Tensor> tensors) {
  const StepTimer::Component component =
      timer_.component(std::string(purpose) + "." + std::string(name_of(collective)));
  return {std::move(handle), timer_, component, idle_, std::move(tensors)};
}

TimedCall GroupCalls::all_reduce(const at::Tensor& tensor, Reduction reduction) {
  return timed(communicator_->all_reduce(mutable_view(tensor), reduction), group_, Collective::all_reduce, {tensor});
}

TimedCall GroupCalls::all_gather(const at::Tensor& part, const at::Tensor& whole) {
  return all_gather(part, whole, group_);
}

TimedCall GroupCalls::reduce_scatter(const at::Tensor& whole, const at::Tensor& part) {
  return reduce_scatter(whole, part, group_);
}

TimedCall GroupCalls::all_reduce(const at::Tensor& tensor, std::string_view purpose) {
  return timed(communicator_->all_reduce(mutable_view(tensor)), purpose, Collective::all_reduce, {tensor});
}

TimedCall GroupCalls::all_gather(const at::Tensor& part, const at::Tensor& whole, std::string_view purpose) {
  return timed(communicator_->all_gather(const_view(part), mutable_view(whole)), purpose, Collective::all_gather,
               {part, whole});
}

TimedCall GroupCalls::reduce_scatter(const at::Tensor& whole, const at::Tensor& part, std::string_view purpose) {
  return timed(communicator_->reduce_scatter(const_view(whole), mutable_view(part)), purpose,
               Collective::reduce_scatter, {whole, part});
}

TimedCall GroupCalls::all_to_all(const at::Tensor& sent, const at::Tensor& received) {
  return timed(communicator_->all_to_all(const_view(sent), mutable_view(received)), group_, Collective::all_to_all,
               {sent, received});
}

void GroupCalls::wait(Handle& handle, std::string_view purpose, Collective collective) {
  timer_.wait(handle, timer_.component(std::string(purpose) + "." + std::string(name_of(collective))), idle_);
}

TimedCall GroupCalls::send(const at::Tensor& tensor, int to) {
  return timed(communicator_->send(const_view(tensor), to), group_, Collective::send_receive, {tensor});
}

TimedCall GroupCalls::receive(const at::Tensor& tensor, int from) {
  return timed(communicator_->receive(mutable_view(tensor), from), group_, Collective::send_receive, {tensor});
}

}  // namespace reckon
