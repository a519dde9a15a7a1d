// Plans and runs that the training tests share.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plan/plan.h"
#include "runtime/comm/local_communicator.h"
#include "runtime/train/rank_scope.h"
#include "runtime/train/rank_trainer.h"

namespace reckon::testing {

/// LLaMA-like: 2 layers, hidden 16, 4 heads, 2 KV heads, vocabulary 37, rows of 12 tokens, FP32.
inline Plan small_plan() {
  Plan plan;
  ModelSpec& model = plan.model;
  model.name = "small";
  model.layers = 2;
  model.hidden = 16;
  model.ffn_hidden = 24;
  model.heads = 4;
  model.kv_heads = 2;
  model.head_dim = 4;
  model.vocabulary = 37;
  plan.hardware.device.is_cpu = true;
  plan.batch = {12, 2, 4};
  plan.precision.compute = NumberFormat::fp32;
  plan.activations.stored = NumberFormat::fp32;
  plan.train.steps = 10;
  return plan;
}

/// Runs `body` on every rank as a thread of its own, with its own memory account.
using RankBody = std::function<void(RankTrainer& trainer, int rank, MemoryAccount& account, Communicator& world)>;

inline void on_ranks(const Plan& plan, const RankBody& body) {
  const TokenStream tokens(plan);
  run_ranks_as_threads(static_cast<int>(plan.world_size()), {}, [&](Communicator& world) {
    // Never destroyed: tests keep tensors that are booked on it.
    MemoryAccount& account = *new MemoryAccount(plan.memory.limit.value_or(Bytes(0)), world.rank());
    const RankScope scope(account);
    RankTrainer trainer(plan, world, tokens);
    body(trainer, world.rank(), account, world);
  });
}

inline void on_ranks(const Plan& plan,
                     const std::function<void(RankTrainer& trainer, int rank, MemoryAccount& account)>& body) {
  on_ranks(plan, [&](RankTrainer& trainer, int rank, MemoryAccount& account, Communicator&) {
    body(trainer, rank, account);
  });
}

/// Every parameter of a store's buffer by name, copied.
inline std::map<std::string, at::Tensor> by_name(const ParameterStore& store, const at::Tensor& buffer) {
  std::map<std::string, at::Tensor> named;
  for (const LocalParameter& parameter : store.layout().parameters)
    named[parameter.whole.name] = store.view(buffer, parameter).clone();
  return named;
}

/// Weights or gradients of the model parts by pipeline and tensor rank, put together from what ranks hold.
using FlatBuffers = std::map<std::pair<std::int64_t, std::int64_t>, at::Tensor>;

/// Puts this rank's shard (all it has, without ZeRO) into its model part. `read(unit, own)` gives its values.
template <class Read>
void place_shard(FlatBuffers& buffers, RankTrainer& trainer, Read read) {
  ParameterStore& store = trainer.parameters();
  const Coordinates& at = trainer.groups().coordinates;
  at::Tensor& flat = buffers[{at.pipeline, at.tensor}];
  for (const FlatRange& unit : store.layout().units) {
    const FlatRange own = store.layout().shard_of(unit, store.shard());
    const at::Tensor values = read(unit, own);
    if (!flat.defined()) flat = at::zeros({store.layout().padded_elements}, values.options());
    flat.narrow(0, own.first, own.count).copy_(values);
  }
}

inline void place_gradients(FlatBuffers& buffers, RankTrainer& trainer) {
  place_shard(buffers, trainer,
              [&](const FlatRange&, const FlatRange& own) { return trainer.parameters().main_gradients().read(own); });
}

inline void place_weights(FlatBuffers& buffers, RankTrainer& trainer) {
  place_shard(buffers, trainer,
              [&](const FlatRange& unit, const FlatRange&) { return trainer.parameters().own_weights(unit); });
}

/// Whole tensors by name from the model parts of a plan.
inline std::map<std::string, at::Tensor> whole_tensors(const Plan& plan, const FlatBuffers& buffers) {
  std::map<std::string, at::Tensor> whole;
  for (const auto& [place, flat] : buffers)
    for (const LocalParameter& parameter :
         parameter_layout(plan, {.tensor = place.second, .pipeline = place.first}).parameters) {
      const at::Tensor slice = flat.narrow(0, parameter.offset, parameter.elements()).view(parameter.local_shape);
      const std::vector<std::int64_t>& shape = parameter.whole.shape;
      at::Tensor& target = whole[parameter.whole.name];
      if (!target.defined()) target = at::zeros(shape, slice.options());
      const std::int64_t dimension = parameter.whole.split == Split::columns ? 1 : 0;
      const std::int64_t first = parameter.whole.split == Split::replicated ? 0 : parameter.first;
      const std::int64_t count = std::min(slice.size(dimension), shape[static_cast<std::size_t>(dimension)] - first);
      if (count > 0) target.narrow(dimension, first, count).copy_(slice.narrow(dimension, 0, count));
    }
  return whole;
}

}  // namespace reckon::testing
