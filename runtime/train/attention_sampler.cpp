#include "runtime/train/attention_sampler.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <utility>

#include "plan/placement_work.h"
#include "plan/row_share.h"
#include "plan/step_documents.h"
#include "runtime/train/ops/dispatch.h"
#include "runtime/train/ops/task_attention.h"
#include "runtime/train/rank_model.h"

namespace reckon {
namespace {

constexpr std::size_t kRows = 2;
constexpr int kRepetitions = 2;  // of each pass in a round

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Op attention_of(const Plan& plan) {
  const OpList list = section_ops(plan, Section::dense_layer, planned_attention_work(plan));
  for (const Op& op : list.ops)
    if (op.kind == OpKind::attention) return op;
  throw std::logic_error("a layer without attention");
}

/// Of the rank with the most pairs, for the rows nearest to `pairs` of that rank.
std::vector<RingTransfers> typical_rows(const Plan& plan, double pairs) {
  StepPacker packer(plan);
  for (std::int64_t step = 0; step < priced_steps(plan).first; ++step) packer.next();
  const PlacementCosts costs = placement_costs(plan);
  std::vector<std::pair<double, RingTransfers>> rows;  // distance from `pairs`
  for (const std::vector<PackedRow>& group : packer.next())
    for (const PackedRow& row : group) {
      const PlacedRow placed = place_row(plan, row, costs);
      const std::vector<double> of_rank = placement_work(placed.documents, placed.placement).pairs;
      const auto worst = std::max_element(of_rank.begin(), of_rank.end());
      rows.emplace_back(std::abs(*worst - pairs),
                        ring_transfers(placed.documents, placed.placement, worst - of_rank.begin(), placed.mode));
    }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  rows.resize(std::min(rows.size(), plan.documents.attention == AttentionScope::whole_row ? 1 : kRows));
  std::vector<RingTransfers> typical;
  for (auto& [distance, row] : rows) typical.push_back(std::move(row));
  return typical;
}

}  // namespace

AttentionSampler::AttentionSampler(const Plan& plan, std::int64_t ranks)
    : op_(attention_of(plan)),
      ranks_(ranks),
      format_(plan.precision.compute),
      rows_(typical_rows(plan, op_.attention.pairs / static_cast<double>(plan.batch.micro_batch))) {
  for (const RingTransfers& row : rows_) pairs_ += row.pairs();
  const AttentionShape& a = op_.attention;
  const at::ScalarType type = scalar_type(format_), wide = accumulator_type(type);
  const std::int64_t tokens = rows_.front().rank_tokens, width = (a.heads + 2 * a.kv_heads) * a.head_dim;
  qkv_ = at::ones({tokens, width}, type);
  output_ = at::zeros({tokens, a.heads * a.head_dim}, type);
  gradient_ = at::ones({tokens, a.heads * a.head_dim}, type);
  log_sum_exp_ = at::zeros({a.heads, tokens}, wide);
  delta_ = at::zeros({a.heads, tokens}, wide);
  sums_ = at::zeros({tokens, width}, wide);
}

void AttentionSampler::forward() {
  const AttentionShape& a = op_.attention;
  const std::int64_t q = a.heads * a.head_dim, kv = a.kv_heads * a.head_dim;
  const KeyValue keys{qkv_.narrow(1, q, kv), qkv_.narrow(1, q + kv, kv)};
  TaskAttention attention(a.head_dim, qkv_.scalar_type());
  for (const RingTransfers& row : rows_) {
    // Where tasks share queries the runtime sums in accumulator precision; a place of its own holds these sums.
    const AttentionState state{row.ring > 1 ? sums_.narrow(1, 0, q) : output_, log_sum_exp_};
    clear(state);
    attention.forward(row.own, qkv_.narrow(1, 0, q), keys, state);
    for (const RingRound& round : row.rounds) attention.forward(round.tasks, qkv_.narrow(1, 0, q), keys, state);
  }
}

void AttentionSampler::backward() {
  const AttentionShape& a = op_.attention;
  const std::int64_t q = a.heads * a.head_dim, kv = a.kv_heads * a.head_dim;
  const KeyValue keys{qkv_.narrow(1, q, kv), qkv_.narrow(1, q + kv, kv)};
  const KeyValue sums{sums_.narrow(1, q, kv), sums_.narrow(1, q + kv, kv)};
  TaskAttention attention(a.head_dim, qkv_.scalar_type());
  for (const RingTransfers& row : rows_) {
    sums_.zero_();
    attention_delta(gradient_, output_, a.head_dim, delta_);
    const AttentionGradient gradient{gradient_, log_sum_exp_, delta_, sums_.narrow(1, 0, q)};
    attention.backward(row.own, qkv_.narrow(1, 0, q), keys, gradient, sums);
    for (const RingRound& round : row.rounds)
      attention.backward(round.tasks, qkv_.narrow(1, 0, q), keys, gradient, sums);
  }
}

void AttentionSampler::sample() {
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    forward_.add(seconds_of([this] { forward(); }));
    backward_.add(seconds_of([this] { backward(); }));
  }
}

void AttentionSampler::drop_last() {
  forward_.drop(kRepetitions);
  backward_.drop(kRepetitions);
}

double AttentionSampler::relative_error() const {
  return std::max(forward_.relative_error(), backward_.relative_error());
}

AttentionSample AttentionSampler::result() const {
  const double scale = pairs_ > 0 ? op_.attention.pairs / pairs_ : 0.0;
  return {op_, ranks_, format_, Seconds(scale * forward_.result()), Seconds(scale * backward_.result())};
}

}  // namespace reckon
