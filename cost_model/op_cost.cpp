#include "cost_model/op_cost.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "cost_model/gemm_cost.h"
#include "plan/core_sharing.h"

namespace reckon {

namespace {

// Attention kernels work on blocks of 128 queries and 128 keys: half of the diagonal blocks is masked work, and each
// block pays for loading and for the first key block before the pipeline fills. Both cost about 150 keys a query:
// FlashAttention-2 on H100, causal, head_dim 128: 191, 260, 298, 319, 333, 335 TFLOP/s at 512 ... 16384 tokens.
constexpr double kExtraKeysPerQuery = 150.0;
// The runtime's attention on CPUs works on runs of 64 queries (docs/context_parallelism.md). The masked half of their
// diagonal blocks and the cost of a run are about 48 keys a query: documents of 2048, 512 and 128 tokens take 1.0, 1.1
// and 1.5 times what their pairs alone would, against 1.0, 1.1 and 1.7 predicted.
constexpr double kExtraKeysPerQueryOnCpu = 48.0;
constexpr double kQueryBlock = 128.0;
constexpr double kBackwardFlops = 2.5;  // rebuilds QK^T, then dV, dP, dQ, dK

/// Narrow heads leave tensor cores waiting for the softmax; heads wider than 128 spill registers.
double head_dim_loss(double head_dim) {
  if (head_dim <= 0.0) return 1.0;
  return head_dim < 128.0 ? std::pow(128.0 / head_dim, 0.25) : std::pow(head_dim / 128.0, 0.18);
}

/// Blocks of causal attention differ in length; few of them leave multiprocessors idle at the end.
double fill_loss(const AttentionShape& shape, int multiprocessors) {
  if (multiprocessors <= 0) return 1.0;
  const double blocks = std::ceil(static_cast<double>(shape.queries) / kQueryBlock) * static_cast<double>(shape.heads);
  return 1.0 + 0.5 * multiprocessors / std::max(1.0, blocks);
}

/// Batched products whose rows are no multiple of 16 bytes run without tensor cores: about 8 times slower than their
/// share of the peak says (BLOOM's prequel: 128 heads of 108 cost 40 % of a step, heads of 96 or 144 nothing).
constexpr double kUnalignedHeads = 8.0;

/// fp8 and fp4 products read 16-bit tensors and write narrow ones with their transpose first.
double quantization_bytes(const GemmShape& shape, Pass pass, NumberFormat format) {
  if (payload_bits(format) > 8) return 0.0;
  const auto batch = static_cast<double>(shape.batch), m = static_cast<double>(shape.m),
             n = static_cast<double>(shape.n), k = static_cast<double>(shape.k);
  switch (pass) {
    case Pass::forward: return 4.0 * batch * (m * k + n * k);  // input and weight, 2 B read, 1 + 1 B written
    case Pass::input_gradient: return 4.0 * batch * m * n;     // output gradient, used by both backward products
    case Pass::weight_gradient: return 0.0;
  }
  return 0.0;
}

NumberFormat wide(NumberFormat format) {
  return payload_bits(format) <= 8 ? NumberFormat::bf16 : format;
}

/// The head's product stays in 16 bits when the layers compute in fewer: frameworks leave the logits alone.
NumberFormat gemm_format(const Plan& plan, const Op& op) {
  return op.name == "head" || op.name == "router" ? wide(plan.precision.compute) : plan.precision.compute;
}

Seconds gemm_seconds(const Plan& plan, const Op& op, Pass pass, OpTime& time) {
  const NumberFormat format = gemm_format(plan, op);
  const HardwareSpec& hardware = plan.hardware;
  const CostEstimate cost = gemm_cost(hardware, op.gemm, pass, format);
  time.provenance = std::max(time.provenance, cost.provenance);
  const double bytes = quantization_bytes(op.gemm, pass, format);
  if (bytes == 0.0) return cost.seconds;
  return cost.seconds + memory_bound_cost(hardware, hardware.time.memory_bound, bytes).seconds;
}

/// Measured while as many ranks computed as the plan has at a time; otherwise with another number of them.
const OpSample* sample_of(const Plan& plan, const Op& op) {
  if (plan.hardware.time.op_samples.empty()) return nullptr;
  const std::string shape = shape_key(op), key = measured_shape(op, ranks_at_once(plan));
  const OpSample* other = nullptr;
  for (const OpSample& sample : plan.hardware.time.op_samples) {
    if (sample.op != op.name || sample.format != plan.precision.compute || !sample.shape.starts_with(shape)) continue;
    if (sample.shape == key) return &sample;
    if (sample.shape == shape || sample.shape[shape.size()] == ',') other = &sample;
  }
  return other;
}

/// Pairs that a pass over `shape` takes as long as, see kExtraKeysPerQuery.
double priced_pairs(double pairs, std::int64_t queries, bool cpu) {
  return pairs + (cpu ? kExtraKeysPerQueryOnCpu : kExtraKeysPerQuery) * static_cast<double>(queries);
}

/// Attention over the same queries and heads that was measured with the number of pairs nearest to the op's, carried
/// over to these: other documents.
std::optional<OpSample> attention_sample(const Plan& plan, const Op& op) {
  const AttentionShape& shape = op.attention;
  const std::string like = attention_key(shape) + " ", key = measured_shape(op, ranks_at_once(plan)),
                    ranks = key.substr(shape_key(op).size());
  const auto priced = [&](double pairs) { return priced_pairs(pairs, shape.queries, plan.hardware.device.is_cpu); };
  std::optional<OpSample> nearest;
  double least = std::numeric_limits<double>::infinity(), factor = 1;
  for (const OpSample& sample : plan.hardware.time.op_samples) {
    if (sample.op != op.name || sample.format != plan.precision.compute) continue;
    if (!sample.shape.starts_with(like) || !sample.shape.ends_with(ranks)) continue;
    const std::optional<double> pairs = pairs_of_key(sample.shape);
    if (!pairs || *pairs <= 0) continue;
    const double ratio = priced(shape.pairs) / priced(*pairs), distance = std::abs(std::log(ratio));
    if (distance < least) nearest = sample, least = distance, factor = ratio;
  }
  if (nearest) nearest->forward *= factor, nearest->backward *= factor;
  return nearest;
}

void time_gemm(const Plan& plan, const Op& op, OpTime& time) {
  time.provenance = Provenance::datasheet;
  time.forward = gemm_seconds(plan, op, Pass::forward, time);
  time.input_gradient = gemm_seconds(plan, op, Pass::input_gradient, time);
  time.weight_gradient = gemm_seconds(plan, op, Pass::weight_gradient, time);
}

void time_attention(const Plan& plan, const Op& op, OpTime& time) {
  const NumberFormat format = wide(plan.precision.compute);
  const HardwareSpec& hardware = plan.hardware;
  if (plan.kernels.attention == AttentionKernel::unfused) {
    time.forward = unfused_attention_cost(hardware, op.attention, plan.batch.sequence_length, format, false).seconds;
    time.input_gradient =
        unfused_attention_cost(hardware, op.attention, plan.batch.sequence_length, format, true).seconds;
    return;
  }
  const auto bytes = [](Bytes amount) { return static_cast<double>(amount.value); };
  const CostEstimate forward = attention_cost(hardware, op.attention, bytes(op.forward_traffic), format, false);
  time.forward = forward.seconds;
  time.input_gradient = attention_cost(hardware, op.attention, bytes(op.backward_traffic), format, true).seconds;
  time.provenance = forward.provenance;
}

void add_traffic(const Plan& plan, const Op& op, OpTime& time) {
  const HardwareSpec& hardware = plan.hardware;
  const OpFit& fit = hardware.time.memory_bound;
  const auto seconds = [&](Bytes bytes) {
    if (bytes.value <= 0) return Seconds(0.0);
    return memory_bound_cost(hardware, fit, static_cast<double>(bytes.value)).seconds;
  };
  time.forward += seconds(op.forward_traffic);
  time.input_gradient += seconds(op.backward_traffic);
}

std::vector<Seconds> collective_times(const Plan& plan, const GroupLayouts& layouts,
                                      const std::vector<CollectiveCall>& calls) {
  std::vector<Seconds> times;
  for (const CollectiveCall& call : calls) {
    const CostEstimate one = collective_cost(plan.hardware, call.collective, layouts[call.group], call.bytes);
    times.push_back(one.seconds * static_cast<double>(call.calls));
  }
  return times;
}

}  // namespace

GroupLayouts::GroupLayouts(const Plan& plan) {
  const RankGrid grid(plan);
  for (const Group group : {Group::tensor, Group::ulysses, Group::ring, Group::expert, Group::data, Group::gradient,
                            Group::expert_gradient, Group::shard, Group::replica, Group::gradient_inside,
                            Group::gradient_across, Group::pipeline, Group::embedding})
    layouts_[static_cast<std::size_t>(group)] = grid.layout(group, plan.hardware.devices_per_node);
  if (!plan.hardware.device.is_cpu) return;
  for (GroupLayout& layout : layouts_)  // groups inside a CPU node share its cores
    if (layout.nodes == 1) layout.siblings = std::max<std::int64_t>(1, plan.world_size() / layout.ranks);
}

OpTime op_time(const Plan& plan, const GroupLayouts& layouts, const Op& op) {
  OpTime time;
  const std::optional<OpSample> attention =
      op.kind == OpKind::attention && op.attention.pairs > 0 ? attention_sample(plan, op) : std::nullopt;
  if (const OpSample* sample = attention ? &*attention : sample_of(plan, op)) {
    const bool weights = op.kind == OpKind::gemm;
    time.forward = sample->forward;
    time.input_gradient = weights ? sample->backward * 0.5 : sample->backward;
    time.weight_gradient = weights ? sample->backward * 0.5 : Seconds(0.0);
    time.provenance = Provenance::calibrated;
  } else {
    if (op.kind == OpKind::gemm) time_gemm(plan, op, time);
    if (op.kind == OpKind::attention) time_attention(plan, op, time);
    else add_traffic(plan, op, time);
  }
  time.forward_collectives = collective_times(plan, layouts, op.forward_collectives);
  time.backward_collectives = collective_times(plan, layouts, op.backward_collectives);
  return time;
}

CostEstimate attention_cost(const HardwareSpec& hardware, const AttentionShape& shape, double traffic,
                            NumberFormat format, bool backward) {
  if (shape.pairs <= 0.0) return {Seconds(0.0), 0.0, Provenance::calibrated};
  const OpFit& fit = backward ? hardware.time.attention_backward : hardware.time.attention_forward;
  const bool cpu = hardware.device.is_cpu;
  // On CPUs the runtime's kernel widens what it reads and computes in fp32.
  const bool widens = cpu && hardware.device.peak.contains(NumberFormat::fp32);
  const NumberFormat computes_in = widens ? NumberFormat::fp32 : format;
  AttentionShape worked = shape;
  worked.pairs = priced_pairs(shape.pairs, shape.queries, cpu);
  const double flops = worked.forward_flops() * (backward ? kBackwardFlops : 1.0);
  const double loss =
      cpu ? 1.0
          : head_dim_loss(static_cast<double>(shape.head_dim)) * fill_loss(shape, hardware.device.multiprocessors);
  const double compute = fit.flops_factor * loss * flops / device_peak(hardware, computes_in).value;
  const double bytes = fit.bytes_factor * traffic / hardware.device.memory_bandwidth.value;
  return {Seconds(compute + bytes + fit.constant.value), fit.relative_error, fit.provenance};
}

CostEstimate unfused_attention_cost(const HardwareSpec& hardware, const AttentionShape& shape, std::int64_t keys,
                                    NumberFormat format, bool backward) {
  if (shape.queries <= 0 || keys <= 0) return {Seconds(0.0), 0.0, Provenance::calibrated};
  // One product per head and row; the mask hides results but saves no work.
  const std::int64_t rows = std::max<std::int64_t>(1, shape.queries / keys);
  const GemmShape scores{rows * shape.heads, keys, keys, shape.head_dim};
  const GemmShape values{rows * shape.heads, keys, shape.value_dim, keys};
  const double cells = static_cast<double>(scores.batch) * static_cast<double>(keys) * static_cast<double>(keys);
  double seconds = 0.0;
  for (const GemmShape& product : {scores, values}) {
    if (!backward) {
      seconds += gemm_cost(hardware, product, Pass::forward, format).seconds.value;
      continue;
    }
    seconds += gemm_cost(hardware, product, Pass::input_gradient, format).seconds.value +
               gemm_cost(hardware, product, Pass::weight_gradient, format).seconds.value;
  }
  if (!hardware.device.is_cpu && (shape.head_dim % 8 != 0 || shape.value_dim % 8 != 0)) seconds *= kUnalignedHeads;
  // Scale, mask, softmax and dropout between the products, 16-bit scores, a dropout mask of a byte: forward reads and
  // writes them twice, backward three times.
  const double softmax = cells * (backward ? 13.0 : 9.0);
  const CostEstimate pass = memory_bound_cost(hardware, hardware.time.memory_bound, softmax);
  return {Seconds(seconds) + pass.seconds, pass.relative_error, pass.provenance};
}

CostEstimate memory_bound_cost(const HardwareSpec& hardware, const OpFit& fit, double bytes) {
  return {Seconds(fit.bytes_factor * bytes / hardware.device.memory_bandwidth.value + fit.constant.value),
          fit.relative_error, fit.provenance};
}

}  // namespace reckon
