// The ops of attention on one rank of a context group, from q, k, v of its tokens to the projection's input and back:
// the part of a layer's op list between the QKV product and the projection.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <utility>
#include <vector>

#include "runtime/train/op_call.h"
#include "runtime/train/rank_groups.h"
#include "runtime/train/rank_model.h"

namespace reckon::testing {

class ContextRank {
 public:
  ContextRank(const Plan& plan, const std::vector<PackedRow>& rows, Communicator& world)
      : groups_(plan, world, timer_),
        model_(plan, groups_, timer_),
        list_(section_ops(plan, Section::dense_layer, {})),
        row_tokens_(plan.batch.sequence_length) {
    const PlacementCosts costs = placement_costs(plan);
    for (const PackedRow& row : rows)
      batch_.shares.push_back(std::make_shared<const RowShare>(
          row_share(plan, place_row(plan, row, costs), groups_.coordinates.ring, groups_.coordinates.ulysses)));
  }

  /// Index of each of the rank's tokens among the tokens of all rows.
  at::Tensor places() const {
    std::vector<std::int64_t> all;
    for (std::size_t row = 0; row < batch_.shares.size(); ++row)
      for (const std::int64_t place : batch_.shares[row]->places)
        all.push_back(static_cast<std::int64_t>(row) * row_tokens_ + place);
    return at::tensor(all);
  }

  void run(const at::Tensor& qkv, const at::Tensor& output_gradient) {
    std::vector<at::Tensor> values(list_.tensors.size()), gradients(list_.tensors.size());
    const std::vector<char> kept(list_.tensors.size(), 0);
    std::vector<const Op*> ops;
    for (const Op& op : list_.ops)
      if (op.name == "scatter_heads" || op.name == "attention" || op.name == "gather_heads") ops.push_back(&op);
    const LocalShape& s = model_.shape;
    const std::int64_t widths[] = {s.heads * s.head_dim, s.kv_heads * s.head_dim, s.kv_heads * s.head_dim};
    std::int64_t first = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      values[at(ops.front()->inputs[i])] = qkv.narrow(1, first, widths[i]);
      first += widths[i];
    }
    const auto call = [&](const Op& op) {
      return OpCall{model_, list_, op, no_parameters_, batch_, values, gradients, kept};
    };
    for (const Op* op : ops) {
      OpCall forward = call(*op);
      find_op_functions(op->name)->forward(forward);
    }
    output_ = values[at(ops.back()->outputs.back())];
    const Op& last = *ops.back();
    gradients[at(last.name == "gather_heads" ? last.outputs[0] : last.outputs[2])] = output_gradient;
    for (std::size_t i = ops.size(); i-- > 0;) {
      OpCall backward = call(*ops[i]);
      find_op_functions(ops[i]->name)->backward(backward);
      for (const int output : ops[i]->outputs) gradients[at(output)].reset();
    }
    const int whole = list_.tensors[at(ops.front()->inputs[0])].storage_of;
    gradient_ = gradients[at(whole)].view({qkv.size(0), qkv.size(1)});
  }

  const at::Tensor& output() const { return output_; }
  const at::Tensor& gradient() const { return gradient_; }
  const std::vector<std::shared_ptr<const RowShare>>& shares() const { return batch_.shares; }
  /// Messages and bytes that this rank has sent.
  std::pair<std::int64_t, std::int64_t> counted_keys() const { return counted(groups_.ring_keys.get()); }
  std::pair<std::int64_t, std::int64_t> counted_gradients() const { return counted(groups_.ring_gradients.get()); }

 private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  static std::pair<std::int64_t, std::int64_t> counted(GroupCalls* group) {
    std::pair<std::int64_t, std::int64_t> sum{0, 0};
    for (const TrafficCount& count : group->communicator().traffic()) {
      sum.first += count.calls;
      sum.second += static_cast<std::int64_t>(count.bytes_per_rank);
    }
    return sum;
  }

  StepTimer timer_;
  RankGroups groups_;
  RankModel model_;
  OpList list_;
  std::int64_t row_tokens_;
  MicroBatch batch_;
  OpParameters no_parameters_;
  at::Tensor output_, gradient_;
};

}  // namespace reckon::testing
