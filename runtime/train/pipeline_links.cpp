#include "runtime/train/pipeline_links.h"

#include <ATen/ATen.h>

#include "runtime/train/counting_allocator.h"
#include "runtime/train/memory_account.h"

namespace reckon {

int PipelineLinks::neighbour(int direction) const {
  const auto stages = static_cast<int>(model_.plan.parallel.pipeline);
  return (static_cast<int>(model_.coordinates.pipeline) + direction + stages) % stages;
}

std::int64_t PipelineLinks::rank_of(int stage) const {
  Coordinates place = model_.coordinates;
  place.pipeline = stage;
  return RankGrid(model_.plan.parallel).rank(place);
}

PipelineLinks::PipelineLinks(const RankModel& model, const RankGroups& groups) : model_(model), groups_(groups) {
  const ParallelSpec& parallel = model.plan.parallel;
  if (parallel.pipeline == 1) return;
  const bool wraps = parallel.chunks > 1;
  const CategoryScope scope(MemoryCategory::communication);
  if (wraps || model.coordinates.pipeline + 1 < parallel.pipeline) last_output_.tensor = empty_message();
  if (wraps || model.coordinates.pipeline > 0) last_gradient_.tensor = empty_message();
}

at::Tensor PipelineLinks::empty_message() const {
  return at::empty({model_.shape.rows, model_.shape.hidden}, model_.options(model_.compute));
}

at::Tensor PipelineLinks::receive(GroupCalls& group, int direction) {
  const at::Tensor tensor = empty_message();
  group.receive(tensor, neighbour(direction)).wait();
  model_.timer.note_message(rank_of(neighbour(direction)), direction < 0, false);
  return tensor;
}

void PipelineLinks::send(GroupCalls& group, const at::Tensor& tensor, int direction, Sent& last) {
  last.call.wait();
  recategorize(tensor, MemoryCategory::communication);
  last.tensor = tensor;
  model_.timer.note_message(rank_of(neighbour(direction)), direction > 0, true);
  last.call = group.send(tensor, neighbour(direction));
}

void PipelineLinks::finish() {
  last_output_.call.wait();
  last_gradient_.call.wait();
}

}  // namespace reckon
