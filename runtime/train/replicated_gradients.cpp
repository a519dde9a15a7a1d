#include "runtime/train/replicated_gradients.h"

#include <ATen/ATen.h>

#include "plan/replicated_weights.h"

namespace reckon {

ReplicatedGradients::ReplicatedGradients(const Plan& plan, ParameterStore& store, const RankGroups& groups)
    : store_(store),
      groups_(groups),
      tensor_(replicated_ranges(plan, store.layout(), Split::replicated, store.shard())),
      key_value_(replicated_ranges(plan, store.layout(), Split::kv_rows, store.shard())) {}

void ReplicatedGradients::sum() {
  if (!tensor_.empty()) sum_over(*groups_.tensor, tensor_);
  if (!key_value_.empty()) sum_over(*groups_.key_value_replicas, key_value_);
}

void ReplicatedGradients::sum_over(GroupCalls& group, const std::vector<FlatRange>& ranges) {
  const ParameterLayout& layout = store_.layout();
  MainGradients& main = store_.main_gradients();
  const auto own_part = [&](const FlatRange& range) {
    return layout.shard_of(layout.units[layout.unit_of(range.first)], store_.shard());
  };
  const auto in_own_part = [&](const at::Tensor& part, const FlatRange& range) {
    return part.narrow(0, range.first - own_part(range).first, range.count);
  };
  std::vector<at::Tensor> parts;
  for (const FlatRange& range : ranges) parts.push_back(in_own_part(main.read(own_part(range)), range));
  const at::Tensor message = at::cat(parts);
  parts.clear();
  group.all_reduce(message).wait();
  std::int64_t place = 0;
  for (const FlatRange& range : ranges) {
    const at::Tensor part = main.read(own_part(range));
    in_own_part(part, range).copy_(message.narrow(0, place, range.count));
    main.write(own_part(range), part);
    place += range.count;
  }
}

}  // namespace reckon
