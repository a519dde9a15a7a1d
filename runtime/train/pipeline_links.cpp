#include "runtime/train/pipeline_links.h"

#include <ATen/ATen.h>

#include "runtime/train/counting_allocator.h"

namespace reckon {

int PipelineLinks::neighbour(int direction) const {
  const auto stages = static_cast<int>(model_.plan.parallel.pipeline);
  return (static_cast<int>(model_.coordinates.pipeline) + direction + stages) % stages;
}

at::Tensor PipelineLinks::receive(GroupCalls& group, int direction) {
  const at::Tensor tensor = at::empty({model_.shape.rows, model_.shape.hidden}, model_.compute);
  group.receive(tensor, neighbour(direction)).wait();
  return tensor;
}

void PipelineLinks::send(GroupCalls& group, const at::Tensor& tensor, int direction) {
  while (!sends_.empty() && sends_.front().done()) {
    sends_.front().wait();  // lets go of the tensor
    sends_.pop_front();
  }
  recategorize(tensor, MemoryCategory::communication);  // until the neighbour has taken it
  sends_.push_back(group.send(tensor, neighbour(direction)));
}

void PipelineLinks::finish() {
  for (TimedCall& call : sends_) call.wait();
  sends_.clear();
}

}  // namespace reckon
