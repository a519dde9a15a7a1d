#include "runtime/train/replicated_gradients.h"

#include <ATen/ATen.h>

#include <vector>

namespace reckon {

ReplicatedGradients::ReplicatedGradients(const Plan& plan, const ParameterStore& store, const RankGroups& groups)
    : plan_(plan), store_(store), groups_(groups) {}

void ReplicatedGradients::sum_layer(std::int64_t layer) const {
  if (!groups_.tensor) return;
  std::vector<TimedCall> calls;
  for (const LocalParameter& parameter : store_.layout().parameters) {
    if (parameter.layer != layer) continue;
    const at::Tensor gradient = store_.gradients().narrow(0, parameter.offset, parameter.elements());
    if (parameter.whole.split == Split::replicated && plan_.parallel.sequence)
      calls.push_back(groups_.tensor->all_reduce(gradient));
    if (parameter.whole.split == Split::kv_rows && groups_.key_value_replicas)
      calls.push_back(groups_.key_value_replicas->all_reduce(gradient));
  }
  for (TimedCall& call : calls) call.wait();
}

}  // namespace reckon
