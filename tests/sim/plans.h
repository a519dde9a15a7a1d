// Plans for the simulator's tests, built in code so that they depend on no file.
#pragma once

#include <random>

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

/// A legal small plan of random degrees, schedule and methods.
inline Plan random_plan(std::mt19937_64& random) {
  const auto one_of = [&](std::initializer_list<std::int64_t> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(random() % values.size()));
  };
  Plan plan = test_plan(test_model(1, one_of({1024, 2048, 4096}), 8));
  ParallelSpec& parallel = plan.parallel;
  parallel.pipeline = one_of({1, 1, 2, 3, 4, 8});
  parallel.data = one_of({1, 2, 4, 8});
  parallel.tensor = one_of({1, 2, 4, 8});
  parallel.sequence = parallel.tensor > 1 && random() % 2 == 0;
  parallel.zero = static_cast<int>(one_of({0, 1, 2, 3}));
  const auto schedule = one_of({0, 1, 1, 2});
  parallel.schedule = static_cast<ScheduleKind>(parallel.pipeline == 1 && schedule == 2 ? 1 : schedule);
  const bool interleaved = parallel.schedule == ScheduleKind::interleaved;
  parallel.chunks = interleaved ? one_of({2, 3}) : 1;
  plan.model.layers = parallel.pipeline * parallel.chunks * one_of({1, 2, 4}) + one_of({0, 0, 1});
  plan.model.kv_heads = one_of({8, 8, 8});
  plan.model.tied_head = random() % 4 == 0;
  const std::int64_t micro_batches = interleaved ? parallel.pipeline * one_of({1, 2, 3}) : one_of({1, 2, 4, 8, 16});
  plan.batch = {one_of({1024, 2048, 4096, 8192}), 1, micro_batches * parallel.data};
  const auto recompute = one_of({0, 0, 1, 3});
  plan.activations.recompute = static_cast<Recompute>(recompute);
  plan.activations.recompute_layers = {one_of({0, 1, 2})};
  return plan;
}

}  // namespace reckon
