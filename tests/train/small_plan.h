// Plans and runs that the training tests share.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <map>
#include <string>

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

}  // namespace reckon::testing
