#include "runtime/train/optimizer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "runtime/train/kernels/device/elementwise.h"
#include "runtime/train/kernels/device/optimizer.h"
#include "runtime/train/memory_account.h"
#include "runtime/train/ops/dispatch.h"

namespace reckon {

double learning_rate(const OptimizerSpec& optimizer, std::int64_t step, std::int64_t steps) {
  const double peak = optimizer.learning_rate, least = optimizer.minimum_learning_rate;
  if (step < optimizer.warmup_steps)
    return peak * static_cast<double>(step + 1) / static_cast<double>(optimizer.warmup_steps);
  const std::int64_t decay_steps = std::max<std::int64_t>(1, steps - 1 - optimizer.warmup_steps);
  const double progress =
      std::min(1.0, static_cast<double>(step - optimizer.warmup_steps) / static_cast<double>(decay_steps));
  switch (optimizer.schedule) {
    case LearningRateSchedule::constant: return peak;
    case LearningRateSchedule::linear: return peak + (least - peak) * progress;
    case LearningRateSchedule::cosine:
      return least + (peak - least) * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  }
  return peak;
}

namespace {

constexpr std::uint64_t kStepSeed = 0xd1342543de82ef95u;

FlatRange overlap(const FlatRange& a, const FlatRange& b) {
  const std::int64_t first = std::max(a.first, b.first);
  return {first, std::max<std::int64_t>(0, std::min(a.end(), b.end()) - first)};
}

/// Place of this rank among those that hold the same weights.
std::int64_t replica_rank(const Plan& plan, const Coordinates& at) {
  return at.ulysses + plan.parallel.ulysses * (at.ring + plan.parallel.ring * at.data);
}

/// Parts of the flat buffer whose squares this rank adds: cut as ZeRO-1 over all replicas cuts it.
std::vector<FlatRange> norm_shares(const Plan& plan, const ParameterLayout& layout, const Coordinates& at) {
  const std::int64_t replicas = plan.parallel.data * plan.context(), rank = replica_rank(plan, at);
  if (layout.shards > 1) {  // one of the replicas of a shard counts it
    return rank < layout.shards ? layout.shard_ranges(rank) : std::vector<FlatRange>{};
  }
  const std::int64_t padded = round_up(layout.elements, replicas);
  std::vector<FlatRange> shares;
  for (const FlatRange& unit : layout.by_section ? layout.units : bucket_units(plan, padded, replicas)) {
    const std::int64_t part = (unit.count + replicas - 1) / replicas;
    shares.push_back(overlap(unit, {unit.first + rank * part, part}));
  }
  return shares;
}

}  // namespace

Optimizer::Optimizer(const Plan& plan, ParameterStore& store, const RankGroups& groups, StepTimer& timer)
    : spec_(plan.optimizer),
      seed_(plan.train.seed),
      block_(plan.activations.block),
      store_(store),
      shard_(groups.shard.get()),
      timer_(timer),
      component_(timer.component("optimizer")) {
  add_pieces(plan, groups);
  add_runs(plan);
  make_states(plan);
}

void Optimizer::make_states(const Plan& plan) {
  const CategoryScope scope(MemoryCategory::optimizer);
  const at::TensorOptions fp32 = store_.weights().options().dtype(at::kFloat);
  if (store_.weights().scalar_type() == at::kBFloat16) {
    master_ = at::empty({count_}, fp32);
    for (const Piece& piece : pieces_) master_.narrow(0, piece.place, piece.range.count).copy_(weights_of(piece));
  }
  if (plan.optimizer.kind != OptimizerKind::adamw) return;
  for (Moment* moment : {&first_, &second_}) {
    if (wide_ > 0) moment->wide = at::zeros({wide_}, fp32);
    if (narrow_ == 0) continue;
    moment->codes = at::zeros({narrow_}, fp32.dtype(at::kByte));
    moment->scales = at::zeros({blocks_}, fp32);
  }
}

/// Runs lie in pieces, in the same order.
void Optimizer::add_runs(const Plan& plan) {
  std::size_t piece = 0;
  for (const StateRun& states : state_runs(plan, store_.layout(), store_.shard())) {
    while (states.range.first >= pieces_[piece].range.end()) ++piece;
    const std::int64_t count = states.range.count;
    runs_.push_back({states, piece, states.narrow ? narrow_ : wide_, blocks_});
    if (states.narrow) {
      narrow_ += count;
      blocks_ += (count + block_ - 1) / block_;
    } else {
      wide_ += count;
    }
  }
}

void Optimizer::add_pieces(const Plan& plan, const RankGroups& groups) {
  const ParameterLayout& layout = store_.layout();
  const bool in_one_go = layout.shards == 1 && !layout.by_section;
  for (const FlatRange& range :
       in_one_go ? std::vector{FlatRange{0, layout.padded_elements}} : layout.shard_ranges(store_.shard())) {
    pieces_.push_back({range, count_, {}});
    count_ += range.count;
  }
  for (const FlatRange& share : norm_shares(plan, layout, groups.coordinates))
    for (Piece& piece : pieces_)
      for (const LocalParameter& parameter : layout.parameters) {
        const FlatRange counted = overlap(overlap(share, piece.range), {parameter.offset, parameter.elements()});
        if (counted.count > 0 && groups.counts(parameter)) piece.counted.push_back(counted);
      }
}

at::Tensor Optimizer::weights_of(const Piece& piece) const {
  const ParameterLayout& layout = store_.layout();
  if (layout.shards == 1) return store_.weights().narrow(0, piece.range.first, piece.range.count);
  return store_.own_weights(layout.units[layout.unit_of(piece.range.first)]);
}

namespace {

/// Sum of the squares: of a tensor of the host returned, of one on a device added to `device_sum` there.
double sum_of_squares(const at::Tensor& values, at::Tensor& device_sum) {
  return with_element_type(values, [&]<class T>(T, auto... place) -> double {
    if constexpr (std::is_same_v<T, kernels::BFloat16>) {
      throw std::logic_error("gradients are read in fp32 or fp64");
    } else if constexpr (sizeof...(place) == 0) {
      return kernels::sum_of_squares(pointer<const T>(values), values.numel());
    } else {
      const std::int64_t blocks = (values.numel() + kernels::kSquaresBlock - 1) / kernels::kSquaresBlock;
      const at::Tensor sums = at::empty({blocks}, values.options().dtype(at::kDouble));
      kernels::sums_of_squares(pointer<const T>(values), values.numel(), pointer<double>(sums), place...);
      device_sum = device_sum.defined() ? device_sum.add_(sums.sum()) : sums.sum();
      return 0;
    }
  });
}

}  // namespace

double Optimizer::squared_norm_share() {
  const StepTimer::Span span(timer_, component_);
  double sum = 0;
  at::Tensor device_sum;
  for (const Piece& piece : pieces_) {
    if (piece.counted.empty()) continue;
    const at::Tensor gradients = store_.main_gradients().read(piece.range);
    for (const FlatRange& range : piece.counted) {
      const std::int64_t first = range.first - piece.range.first;
      sum += sum_of_squares(gradients.narrow(0, first, range.count), device_sum);
    }
  }
  return device_sum.defined() ? device_sum.item<double>() : sum;
}

void Optimizer::update(std::int64_t step, double rate, double gradient_scale) {
  {
    const StepTimer::Span span(timer_, component_);
    at::Tensor gradient;
    std::size_t piece = pieces_.size();  // whose gradient that is
    for (const Run& run : runs_) {
      if (run.piece != piece) {
        gradient.reset();
        piece = run.piece;
        gradient = store_.main_gradients().read(pieces_[piece].range);
      }
      update(run, step, rate, static_cast<float>(gradient_scale), gradient);
    }
  }
  gather_weights();
}

void Optimizer::update(const Run& run, std::int64_t step, double rate, float gradient_scale,
                       const at::Tensor& piece_gradient) {
  const Piece& piece = pieces_[run.piece];
  const std::int64_t count = run.states.range.count, first = run.states.range.first - piece.range.first;
  const at::Tensor weights = weights_of(piece).narrow(0, first, count);
  const auto* gradients = pointer<const float>(piece_gradient) + first;
  float* target = master_.defined() ? pointer<float>(master_) + piece.place + first : pointer<float>(weights);
  auto* rounded = master_.defined() ? pointer<kernels::BFloat16>(weights) : nullptr;
  with_element_type(piece_gradient, [&](auto, auto... place) {
    if (spec_.kind == OptimizerKind::sgd) {
      kernels::sgd(static_cast<float>(rate), static_cast<float>(spec_.weight_decay), gradient_scale, target, gradients,
                   count, place...);
      if (rounded != nullptr) kernels::to_bfloat16(target, rounded, count, place...);
      return;
    }
    const kernels::AdamwStep values{static_cast<float>(rate),
                                    static_cast<float>(spec_.beta1),
                                    static_cast<float>(spec_.beta2),
                                    static_cast<float>(spec_.epsilon),
                                    static_cast<float>(spec_.weight_decay),
                                    gradient_scale,
                                    static_cast<float>(1.0 - std::pow(spec_.beta1, static_cast<double>(step))),
                                    static_cast<float>(1.0 - std::pow(spec_.beta2, static_cast<double>(step)))};
    if (run.states.narrow) {
      const kernels::NarrowMoments moments{
          pointer<std::int8_t>(first_.codes) + run.place, pointer<std::uint8_t>(second_.codes) + run.place,
          pointer<float>(first_.scales) + run.block, pointer<float>(second_.scales) + run.block};
      const std::uint64_t seed =
          (seed_ + static_cast<std::uint64_t>(step)) * kStepSeed + static_cast<std::uint64_t>(run.states.range.first);
      kernels::adamw(values, target, moments, block_, seed, gradients, rounded, count, place...);
      return;
    }
    float *first_moment = pointer<float>(first_.wide) + run.place,
          *second_moment = pointer<float>(second_.wide) + run.place;
    if (rounded != nullptr)
      kernels::adamw(values, target, first_moment, second_moment, gradients, rounded, count, place...);
    else kernels::adamw(values, target, first_moment, second_moment, gradients, count, place...);
  });
}

/// With ZeRO-3 the shards are all that stays.
void Optimizer::gather_weights() {
  if (shard_ == nullptr || store_.weights_are_shard()) return;
  std::vector<TimedCall> calls;
  for (const FlatRange& unit : store_.layout().units)
    calls.push_back(
        shard_->all_gather(store_.own_weights(unit), store_.weights().narrow(0, unit.first, unit.count), "parameter"));
  for (TimedCall& call : calls) call.wait();
}

}  // namespace reckon
