// Single keys in range, and totals that stay below what 64 bits can count.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "plan/check_model.h"
#include "plan/parameters.h"
#include "plan/plan_rules.h"
#include "plan/plan_schema.h"

namespace reckon {

namespace {

void check_hardware(Rules& rules) {
  const HardwareSpec& hardware = rules.plan.hardware;
  constexpr int kMostDevices = 1 << 16;
  if (hardware.devices_per_node < 1 || hardware.devices_per_node > kMostDevices)
    rules.broken("hardware.devices_per_node", fmt::format("hardware.devices_per_node is {}; legal: 1 to {}",
                                                          hardware.devices_per_node, kMostDevices));
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;
  const std::pair<const char*, Bytes> sizes[] = {{"device.memory", hardware.device.memory},
                                                 {"context", hardware.context},
                                                 {"communicator", hardware.communicator}};
  for (const auto& [key, bytes] : sizes)
    if (bytes.value > kMostBytes)
      rules.broken(fmt::format("hardware.{}", key),
                   fmt::format("hardware.{} is {} bytes; at most 2^60 can be planned", key, bytes.value));
  if (hardware.device.memory.value <= 0)
    rules.broken("hardware.device.memory", "hardware.device.memory must be above 0 B");
  if (!(hardware.device.memory_bandwidth.value > 0)) {
    rules.broken("hardware.device.memory_bandwidth", "hardware.device.memory_bandwidth must be above 0");
  }
}

}  // namespace

void check_values(Rules& rules) {
  for (const PlanKey& key : plan_keys()) {
    if (key.set == nullptr) continue;
    try {
      Plan scratch;
      key.set(key.get(rules.plan), scratch);
    } catch (const ConfigError& error) {
      rules.broken(key.path, fmt::format("{}: {}", key.path, error.diagnostics().front().message));
    }
  }
  for (Diagnostic diagnostic : check_model(rules.model)) {
    diagnostic.key = "model." + diagnostic.key;
    if (diagnostic.file.empty()) diagnostic.file = rules.plan.source_file;
    rules.found.push_back(std::move(diagnostic));
  }
  check_hardware(rules);
}

void check_sizes(Rules& rules) {
  constexpr double kMostRanks = 1 << 24, kMostTokens = 1e15, kMostActions = 1 << 21, kMostBytes = 1e18,
                   kMostBuckets = 1 << 20;
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const double world = number(rules.parallel.data) * number(rules.parallel.pipeline) * number(rules.parallel.tensor) *
                       number(rules.parallel.ulysses) * number(rules.parallel.ring);
  if (world > kMostRanks) {
    return rules.broken(
        "parallel",
        fmt::format("data x pipeline x tensor x ulysses x ring = {:.0f} ranks; at most {:.0f} can be planned", world,
                    kMostRanks));
  }
  const double tokens = number(rules.plan.batch.global_batch) * number(rules.plan.batch.sequence_length);
  if (tokens > kMostTokens) {
    rules.broken("batch.global_batch",
                 fmt::format("global_batch x sequence_length = {:.3g} tokens a step; at most {:.0g} can be planned",
                             tokens, kMostTokens));
  }
  const double micro_batches =
      number(rules.plan.batch.global_batch) / (number(rules.plan.batch.micro_batch) * number(rules.parallel.data));
  const double actions = micro_batches * number(rules.parallel.pipeline) * number(rules.parallel.chunks);
  if (actions > kMostActions) {
    rules.broken("batch.micro_batch",
                 fmt::format("{:.0f} micro-batches x {} virtual stages = {:.3g} pipeline actions; at "
                             "most {:.0f} can be planned; raise "
                             "micro_batch or data",
                             micro_batches, rules.plan.virtual_stages(), actions, kMostActions));
  }
  const double widest =
      number(std::max({rules.model.hidden, rules.model.ffn_hidden,
                       rules.model.moe.expert_ffn_hidden * rules.model.moe.experts_per_token,
                       rules.model.heads * std::max(rules.model.head_dim, rules.model.mla.qk_nope_head_dim)}));
  const double row_tokens = number(rules.plan.batch.micro_batch) * number(rules.plan.batch.sequence_length);
  double bytes = row_tokens * (widest * 64 * number(rules.model.layers) + 16 * number(rules.model.vocabulary)) *
                 std::max(1.0, micro_batches);
  if (rules.plan.kernels.attention == AttentionKernel::unfused) {
    bytes += 8 * row_tokens * number(rules.plan.batch.sequence_length) * number(rules.model.heads) *
             number(rules.model.layers) * std::max(1.0, micro_batches);
  }
  if (bytes > kMostBytes) {
    rules.broken(
        "batch.sequence_length",
        fmt::format("the activations of one step come to about {:.2g} bytes a replica; at most {:.0g} can be planned",
                    bytes, kMostBytes));
  }
  const double weights =
                   number(count_parameters(rules.model)) / (number(rules.parallel.tensor * rules.parallel.pipeline)),
               bucket = number(rules.plan.gradients.bucket.value) * 8 / payload_bits(rules.plan.gradients.wire);
  if (weights > kMostBuckets * std::max(1.0, bucket)) {
    rules.broken(
        "gradients.bucket",
        fmt::format("{:.3g} gradients on a rank in buckets of {:.3g} are {:.3g} buckets; at most {:.0f} can be "
                    "planned; legal: {:.3g} bytes or more",
                    weights, bucket, weights / std::max(1.0, bucket), kMostBuckets,
                    weights / kMostBuckets * payload_bits(rules.plan.gradients.wire) / 8));
  }
}

}  // namespace reckon
