#include "plan/ring_traffic.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "plan/op_list_builder.h"

namespace reckon {

namespace {

/// On average over the load's rows. All factors are whole numbers, so that only the division rounds.
StateTraffic mean_of_step(const Plan& plan, const RingLoad& load, NumberFormat format, std::int64_t calls,
                          std::int64_t bytes) {
  const std::int64_t rows_of_step = plan.batch.global_batch / plan.parallel.data;
  const auto mean = [&](std::int64_t sum) {
    return static_cast<double>(sum * rows_of_step) / static_cast<double>(load.rows);
  };
  return {Group::ring, Collective::send_receive, std::string(name_of(format)), std::llround(mean(calls)), mean(bytes)};
}

void keep_largest(StateTraffic& most, StateTraffic sent) {
  const auto amount = [](const StateTraffic& one) { return std::pair(std::llround(one.bytes_sent), one.calls); };
  if (amount(sent) > amount(most)) most = std::move(sent);
}

}  // namespace

RingMessages& RingMessages::operator+=(const RingMessages& other) {
  key_calls += other.key_calls;
  key_bytes += other.key_bytes;
  gradient_calls += other.gradient_calls;
  gradient_bytes += other.gradient_bytes;
  return *this;
}

RingMessages ring_messages(const Plan& plan, const RingSends& sends) {
  const LocalShape shape = local_shape(plan);
  const std::int64_t kv_heads = std::max<std::int64_t>(1, shape.kv_heads / shape.ulysses);
  const std::int64_t width = kv_heads * (shape.head_dim + shape.value_dim);
  return {sends.messages, Bytes(sends.tokens * width * shape.element_bytes), sends.gradient_messages,
          Bytes(sends.gradient_tokens * width * 4)};
}

std::vector<StateTraffic> ring_traffic(const Plan& plan, const std::vector<RingLoad>& loads,
                                       std::int64_t forward_passes, std::int64_t backward_passes) {
  const NumberFormat format = tensor_format(plan);
  const std::int64_t key_passes = forward_passes + backward_passes;
  StateTraffic keys, gradients;
  for (const RingLoad& load : loads) {
    const RingMessages& sent = load.sent;
    std::int64_t calls = key_passes * sent.key_calls, bytes = key_passes * sent.key_bytes.value;
    if (format == NumberFormat::fp32) {  // counted together
      calls += backward_passes * sent.gradient_calls;
      bytes += backward_passes * sent.gradient_bytes.value;
    } else {
      keep_largest(gradients, mean_of_step(plan, load, NumberFormat::fp32, backward_passes * sent.gradient_calls,
                                           backward_passes * sent.gradient_bytes.value));
    }
    keep_largest(keys, mean_of_step(plan, load, format, calls, bytes));
  }
  std::vector<StateTraffic> entries;
  for (const StateTraffic& entry : {keys, gradients})
    if (entry.bytes_sent > 0) entries.push_back(entry);
  return entries;
}

}  // namespace reckon
