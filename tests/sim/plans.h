// Plans for the simulator's tests, built in code so that they depend on no file.
#pragma once

#include <random>

#include "plan/load_plan.h"
#include "plan/plan.h"

namespace reckon {

inline ModelSpec test_model(std::int64_t layers, std::int64_t hidden = 1024, std::int64_t heads = 8) {
  ModelSpec model;
  model.name = "test";
  model.layers = layers;
  model.hidden = hidden;
  model.ffn_hidden = hidden * 11 / 4;
  model.heads = model.kv_heads = heads;
  model.head_dim = hidden / heads;
  model.vocabulary = 32000;
  return model;
}

inline ModelSpec llama2_13b() {
  ModelSpec model = test_model(40, 5120, 40);
  model.name = "llama2-13b";
  model.ffn_hidden = 13824;
  return model;
}

inline ModelSpec llama3_405b() {
  ModelSpec model = test_model(126, 16384, 128);
  model.name = "llama3.1-405b";
  model.ffn_hidden = 53248;
  model.kv_heads = 8;
  model.vocabulary = 128256;
  return model;
}

/// An H100-like device in nodes of 8, one 50 GB/s port a device.
inline HardwareSpec test_hardware() {
  HardwareSpec hardware;
  hardware.name = "test-80gb-8x";
  hardware.device.name = "test";
  hardware.device.peak = {{NumberFormat::bf16, FlopsPerSecond(989e12)}, {NumberFormat::fp32, FlopsPerSecond(67e12)}};
  hardware.device.memory = Bytes(std::int64_t{80} << 30);
  hardware.device.memory_bandwidth = BytesPerSecond(3.35e12);
  hardware.device.multiprocessors = 132;
  hardware.devices_per_node = 8;
  hardware.intra_node = {BytesPerSecond(450e9), Seconds(2e-6), true};
  hardware.inter_node = {BytesPerSecond(50e9), Seconds(5e-6), true};
  hardware.context = Bytes(std::int64_t{1} << 29);
  return hardware;
}

inline Plan test_plan(const ModelSpec& model) {
  Plan plan;
  plan.model = model;
  plan.hardware = test_hardware();
  plan.batch = {4096, 1, 8};
  plan.activations.recompute_layers = {0};
  return plan;
}

/// 64 devices: data 2, pipeline 4, tensor 8, as in the design's example.
inline Plan llama2_13b_on_64() {
  Plan plan = test_plan(llama2_13b());
  plan.batch = {32768, 1, 16};
  plan.parallel.data = 2;
  plan.parallel.pipeline = 4;
  plan.parallel.tensor = 8;
  plan.parallel.sequence = true;
  return plan;
}

/// 16,384 devices: data 128, pipeline 16, tensor 8.
inline Plan llama3_405b_on_16384() {
  Plan plan = test_plan(llama3_405b());
  plan.batch = {8192, 1, 2048};
  plan.parallel.data = 128;
  plan.parallel.pipeline = 16;
  plan.parallel.tensor = 8;
  plan.parallel.sequence = true;
  plan.parallel.zero = 1;
  return plan;
}

/// Random values for the parts of a plan.
class PlanDice {
 public:
  explicit PlanDice(std::mt19937_64& random) : random_(random) {}

  /// A plan that may break rules.
  Plan roll() {
    Plan plan = test_plan(test_model(1, one_of({1024, 2048, 4096}), 8));
    degrees(plan);
    schedule(plan);
    model(plan);
    states(plan);
    activations(plan);
    plan.hardware.devices_per_node = one_of({8, 8, 4});
    plan.hardware.time.overlap_compute_slowdown = 1.0 + 0.1 * static_cast<double>(one_of({0, 1, 1, 3}));
    plan.hardware.time.overlap_communication_slowdown = 1.0 + 0.1 * static_cast<double>(one_of({0, 1, 2, 5}));
    return plan;
  }

 private:
  std::int64_t one_of(std::initializer_list<std::int64_t> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(random_() % values.size()));
  }

  void degrees(Plan& plan) {
    ParallelSpec& parallel = plan.parallel;
    parallel.pipeline = one_of({1, 1, 2, 3, 4, 8});
    parallel.data = one_of({1, 2, 4, 8});
    parallel.tensor = one_of({1, 2, 4, 8});
    parallel.sequence = parallel.tensor > 1 && random_() % 2 == 0;
    parallel.ulysses = one_of({1, 1, 1, 1, 2});
    parallel.ring = one_of({1, 1, 1, 1, 2});
    parallel.zero = static_cast<int>(one_of({0, 1, 2, 3}));
    parallel.zero_group = one_of({0, 0, 0, 2});
  }

  void schedule(Plan& plan) {
    ParallelSpec& parallel = plan.parallel;
    const auto kind = one_of({0, 1, 1, 2});
    parallel.schedule = static_cast<ScheduleKind>(parallel.pipeline == 1 && kind == 2 ? 1 : kind);
    const bool interleaved = parallel.schedule == ScheduleKind::interleaved;
    parallel.chunks = interleaved ? one_of({2, 3}) : 1;
    const std::int64_t micro_batches = interleaved ? parallel.pipeline * one_of({1, 2, 3}) : one_of({1, 2, 4, 8, 16});
    const std::int64_t micro_batch = one_of({1, 1, 2});
    plan.batch = {one_of({1024, 2048, 4096, 8192}), micro_batch, micro_batch * micro_batches * parallel.data};
  }

  void model(Plan& plan) {
    ModelSpec& model = plan.model;
    const std::int64_t stages = plan.virtual_stages();
    model.layers = stages * one_of({1, 2, 4}) + one_of({0, 0, 1});
    model.kv_heads = one_of({8, 8, 4});
    model.tied_head = random_() % 4 == 0;
    if (random_() % 4 == 0) {
      model.moe.experts = 8;
      model.moe.experts_per_token = 2;
      model.moe.expert_ffn_hidden = model.hidden / 2;
      model.moe.dense_first_layers = one_of({0, 1});
      plan.parallel.expert = one_of({1, 2, 4});
    }
    if (random_() % 4 == 0) {
      plan.parallel.layers_per_stage.assign(static_cast<std::size_t>(stages), 1);
      for (std::int64_t left = model.layers - stages; left > 0; --left)
        ++plan.parallel.layers_per_stage[random_() % static_cast<std::uint64_t>(stages)];
    }
  }

  void states(Plan& plan) {
    plan.gradients.bucket = Bytes(one_of({10, 40, 200}) * 1000 * 1000);
    if (random_() % 5 == 0) {
      plan.gradients.reduce = GradientReduce::all_to_all_sum;
      plan.gradients.wire = NumberFormat::fp8_e4m3;
    }
  }

  void activations(Plan& plan) {
    plan.activations.recompute = static_cast<Recompute>(one_of({0, 0, 1, 3}));
    plan.activations.recompute_layers = {one_of({0, 1, 2})};
    if (random_() % 4 != 0) return;
    plan.activations.stored = NumberFormat::int4;
    for (std::int64_t stage = 0; stage < plan.parallel.pipeline; ++stage)
      plan.activations.bits_by_stage.push_back(static_cast<int>(one_of({4, 5, 6, 8})));
  }

  std::mt19937_64& random_;
};

/// A legal small plan of random degrees, schedule, model and methods.
inline Plan random_plan(std::mt19937_64& random) {
  while (true) {
    Plan plan = PlanDice(random).roll();
    if (!check_plan(plan).empty()) continue;
    Plan by_node = plan;
    by_node.gradients.exchange = GradientExchange::hierarchical;
    const bool exchanges = plan.gradients.reduce == GradientReduce::all_to_all_sum;
    return exchanges && check_plan(by_node).empty() ? by_node : plan;
  }
}

}  // namespace reckon
