// Random plans that use most keys of a plan file, legal or not: for properties that hold whatever a user writes.
#pragma once

#include <random>

#include "tests/sim/plans.h"

namespace reckon {

class WildDice {
 public:
  explicit WildDice(std::mt19937_64& random) : random_(random) {}

  Plan roll() {
    Plan plan = PlanDice(random_).roll();
    plan.hardware.device.peak[NumberFormat::fp8_e4m3] = FlopsPerSecond(1979e12);
    plan.hardware.device.is_cpu = !one_in(16);  // replaying the caching allocator takes longer than all the rest
    if (one_in(2)) shape(plan.model);
    if (one_in(2)) kernels(plan);
    if (one_in(2)) storage(plan.activations, plan.parallel.pipeline);
    if (one_in(2)) states(plan);
    if (one_in(16)) documents(plan);
    if (one_in(4)) break_something(plan);
    return plan;
  }

 private:
  bool one_in(std::uint64_t n) { return random_() % n == 0; }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(random_() % values.size()));
  }
  NumberFormat any_format() {
    const std::vector<NumberFormat>& all = all_number_formats();
    return all[random_() % all.size()];
  }

  void shape(ModelSpec& model) {
    model.gated_ffn = !one_in(3);
    model.qkv_bias = one_in(3);
    model.ffn_bias = one_in(3);
    model.qk_norm = one_in(3);
    model.post_norm = one_in(4);
    model.parallel_block = one_in(4);
    model.sliding_window = one_of<std::int64_t>({0, 0, 512});
    model.norm = one_of({Norm::rms_norm, Norm::layer_norm});
    model.vocabulary = one_of<std::int64_t>({1000, 32000, 128256, 50257});
    if (one_in(6)) {
      model.mla = {one_of<std::int64_t>({0, 96}), 64, 32, 16, 32};
      model.head_dim = 48;
      model.kv_heads = model.heads;
    }
  }

  void kernels(Plan& plan) {
    plan.precision.compute = one_of({NumberFormat::bf16, NumberFormat::fp32, NumberFormat::fp8_e4m3});
    plan.activations.stored = plan.precision.compute == NumberFormat::fp32 ? NumberFormat::fp32 : NumberFormat::bf16;
    plan.activations.bits_by_stage.clear();
    plan.kernels.attention = one_of({AttentionKernel::flash, AttentionKernel::flash, AttentionKernel::unfused});
    plan.kernels.activation = one_of({ActivationKernel::fused, ActivationKernel::unfused});
    plan.kernels.loss =
        one_of({LossKernel::fused, LossKernel::fp32_logits, LossKernel::fp32_softmax, LossKernel::chunked});
    plan.kernels.dropout = one_in(4);
    plan.kernels.pending_collectives = one_of<std::int64_t>({0, 0, 55});
  }

  void storage(ActivationSpec& activations, std::int64_t stages) {
    if (one_in(2)) activations.stored = any_format();
    activations.block = one_of({32, 64, 128, 100});
    activations.scale = one_of({ScaleFormat::bf16, ScaleFormat::fp32, ScaleFormat::e8m0});
    activations.recompute = one_of({Recompute::none, Recompute::elementwise, Recompute::selective, Recompute::full});
    for (const ActivationClass one : policy_classes()) {
      if (one_in(4)) activations.classes[one] = {one_in(2), any_format()};
      if (!one_in(16)) continue;
      for (std::int64_t stage = 0; stage < stages; ++stage)
        activations.classes_by_stage[one].push_back({one_in(2), any_format()});
    }
  }

  void states(Plan& plan) {
    plan.gradients.stored = one_of({NumberFormat::fp32, NumberFormat::bf16, NumberFormat::fp8_e4m3});
    plan.gradients.wire = one_of({NumberFormat::fp32, NumberFormat::bf16, NumberFormat::int8});
    plan.gradients.reduce = one_of({GradientReduce::all_reduce, GradientReduce::all_to_all_sum});
    plan.gradients.bucket_copies = one_in(4);
    plan.optimizer.kind = one_of({OptimizerKind::adamw, OptimizerKind::sgd});
    plan.optimizer.states = one_of({NumberFormat::fp32, NumberFormat::bf16, NumberFormat::int8});
    plan.memory.workspace = Bytes(one_of<std::int64_t>({0, 1 << 26}));
    if (one_in(3)) plan.memory.limit = Bytes(one_of<std::int64_t>({1 << 20, 1 << 30, std::int64_t{1} << 36}));
  }

  void documents(Plan& plan) {
    plan.batch.global_batch = plan.batch.micro_batch * plan.parallel.data * plan.parallel.pipeline;
    plan.documents.source = one_of({"fineweb", "wikipedia"});
    plan.documents.rows = one_of({Rows::packed, Rows::padded});
    plan.documents.attention = one_of({AttentionScope::per_document, AttentionScope::whole_row});
    plan.documents.placement =
        one_of({Placement::automatic, Placement::contiguous, Placement::zigzag, Placement::balanced});
  }

  /// One value that a rule may forbid.
  void break_something(Plan& plan) {
    switch (random_() % 8) {
      case 0: plan.batch.global_batch += 1; break;
      case 1: plan.parallel.tensor = 3; break;
      case 2: plan.parallel.pipeline = plan.model.layers + 1; break;
      case 3: plan.parallel.chunks = 5; break;
      case 4: plan.nodes = 3; break;
      case 5: plan.batch.sequence_length = one_of<std::int64_t>({1, 0, -4, 1 << 30, 1001}); break;
      case 6: plan.parallel.expert = one_of<std::int64_t>({3, 64}); break;
      default: plan.activations.bits_by_stage = {9, 1};
    }
  }

  std::mt19937_64& random_;
};

}  // namespace reckon
