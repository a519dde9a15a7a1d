#include "runtime/train/rank_model.h"

#include <ATen/ATen.h>

#include <stdexcept>

namespace reckon {
namespace {

VocabularyGroup vocabulary_group(const Plan& plan, const LocalShape& shape, const Coordinates& coordinates,
                                 GroupCalls* tensor) {
  VocabularyGroup group;
  group.first_column = coordinates.tensor * shape.vocabulary;
  group.columns = std::min(shape.vocabulary, plan.model.vocabulary - group.first_column);
  if (tensor == nullptr) return group;
  group.maximum = [tensor](const at::Tensor& x) { tensor->all_reduce(x, Reduction::maximum).wait(); };
  group.sum = [tensor](const at::Tensor& x) { tensor->all_reduce(x).wait(); };
  return group;
}

}  // namespace

at::ScalarType scalar_type(NumberFormat format) {
  switch (format) {
    case NumberFormat::fp64: return at::kDouble;
    case NumberFormat::fp32: return at::kFloat;
    case NumberFormat::bf16: return at::kBFloat16;
    case NumberFormat::fp16: return at::kHalf;
    default: throw std::logic_error("no torch type for this format");
  }
}

at::TensorOptions tensor_options(TrainDevice device, at::ScalarType type) {
  if (device.is_cpu()) return at::device(at::kCPU).dtype(type);
  return at::device(at::Device(at::kCUDA, static_cast<at::DeviceIndex>(device.index))).dtype(type);
}

RankModel::RankModel(const Plan& checked_plan, const RankGroups& groups, StepTimer& step_timer,
                     TrainDevice train_device)
    : plan(checked_plan),
      coordinates(groups.coordinates),
      shape(local_shape(checked_plan)),
      compute(scalar_type(checked_plan.precision.compute)),
      accumulator(compute == at::kDouble ? at::kDouble : at::kFloat),
      vocabulary(vocabulary_group(checked_plan, shape, coordinates, groups.tensor.get())),
      timer(step_timer),
      device(train_device),
      tensor(groups.tensor.get()),
      ulysses(groups.ulysses.get()),
      ring{groups.ring_keys.get(), groups.ring_gradients.get()} {
  if (plan.model.position != Position::rope) return;
  rotary = rotary_table(plan.model, plan.batch.sequence_length, accumulator);
  for (at::Tensor* table : {&rotary.cosine, &rotary.sine}) *table = table->to(options(accumulator).device());
}

}  // namespace reckon
