#include "runtime/train/rank_trainer.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "plan/errors.h"
#include "plan/split_mix.h"
#include "runtime/train/device/device_rank.h"
#include "runtime/train/memory_account.h"
#include "runtime/train/ops/dispatch.h"

namespace reckon {
namespace {

std::vector<VirtualStage> virtual_stages(const RankModel& model, const ParameterStore& store, const RankGroups& groups,
                                         GradientAccumulation& gradients) {
  std::vector<VirtualStage> stages;
  for (std::int64_t chunk = 0; chunk < model.plan.parallel.chunks; ++chunk)
    stages.emplace_back(model, store, groups.shard.get(), gradients, chunk);
  return stages;
}

}  // namespace

RankTrainer::RankTrainer(const Plan& plan, Communicator& world, const TokenStream& tokens, const RehearsedFault& fault,
                         TrainDevice device)
    : plan_(plan),
      world_(world),
      fault_(fault),
      timer_(device_clock(device)),
      groups_(plan, world, timer_),
      feed_(plan, tokens, groups_.coordinates),
      model_(plan, groups_, timer_, device),
      store_(plan, parameter_layout(plan, groups_.coordinates), model_.options(model_.compute),
             model_.options(model_.accumulator), groups_.shard ? groups_.shard->rank() : 0),
      gradients_(make_gradient_accumulation(plan, store_, groups_, timer_)),
      stages_(virtual_stages(model_, store_, groups_, *gradients_)),
      actions_(pipeline_actions(plan.parallel.schedule, static_cast<int>(plan.parallel.pipeline),
                                static_cast<int>(groups_.coordinates.pipeline), static_cast<int>(plan.parallel.chunks),
                                static_cast<int>(plan.micro_batches()))),
      replicated_(plan, store_, groups_),
      optimizer_(plan, store_, groups_, timer_),
      positions_(row_positions()),
      links_(model_, groups_) {
  if (device_stream(store_.weights())) device_loss_ = at::zeros({1}, model_.options(at::kDouble));
}

at::Tensor RankTrainer::placed(const std::vector<std::int32_t>& numbers) const {
  const at::TensorOptions there = model_.options(at::kInt);
  const at::Tensor tensor = at::empty({static_cast<std::int64_t>(numbers.size())},
                                      at::dtype(at::kInt).pinned_memory(!model_.device.is_cpu()));
  std::copy(numbers.begin(), numbers.end(), pointer<std::int32_t>(tensor));
  return tensor.to(there.device(), at::kInt, /*non_blocking=*/true);
}

/// Of rows that are one document each: the same for all of them.
at::Tensor RankTrainer::row_positions() {
  if (plan_.has_documents()) return {};
  return placed(feed_.rows(0, 0).positions);
}

MicroBatch RankTrainer::make_batch(std::int64_t step, int micro_batch) {
  RankRows rows = feed_.rows(step, micro_batch);
  const CategoryScope scope(MemoryCategory::activations);
  MicroBatch batch;
  batch.tokens = placed(rows.tokens);
  batch.targets = placed(rows.targets);
  if (plan_.has_documents()) batch.positions = placed(rows.positions);
  else batch.positions = positions_;
  batch.device_loss = device_loss_;
  batch.shares = std::move(rows.shares);
  batch.loss_scale = 1.0 / static_cast<double>(feed_.targets(step));
  batch.rounding_seed = split_mix(split_mix(plan_.train.seed) + static_cast<std::uint64_t>(step)) +
                        static_cast<std::uint64_t>(micro_batch * plan_.parallel.data + groups_.coordinates.data);
  return batch;
}

void RankTrainer::run_forward(const Action& action, std::int64_t step) {
  StageActivations& activations = in_flight_[{action.chunk, action.micro_batch}];
  peak_in_flight_ = std::max(peak_in_flight_, in_flight_.size());
  activations.batch = make_batch(step, action.micro_batch);
  VirtualStage& stage = stages_[static_cast<std::size_t>(action.chunk)];
  const at::Tensor output = stage.forward(stage.is_first() ? at::Tensor() : links_.receive_input(), activations);
  fault_.reach(RunPhase::forward, step + 1);
  if (stage.is_last()) loss_sum_ += activations.batch.loss_sum;
  else links_.send_output(output);
}

void RankTrainer::run_backward(const Action& action, std::int64_t step, bool last_micro_batch) {
  const auto found = in_flight_.find({action.chunk, action.micro_batch});
  VirtualStage& stage = stages_[static_cast<std::size_t>(action.chunk)];
  const at::Tensor gradient = stage.backward(stage.is_last() ? at::Tensor() : links_.receive_output_gradient(),
                                             found->second, last_micro_batch);
  fault_.reach(RunPhase::backward, step + 1);
  in_flight_.erase(found);
  if (!stage.is_first()) links_.send_input_gradient(gradient);
}

StepResult RankTrainer::forward_backward(std::int64_t step) {
  gradients_->begin_step(step);
  loss_sum_ = 0;
  if (device_loss_.defined()) device_loss_.zero_();
  std::vector<std::int64_t> left(stages_.size(), plan_.micro_batches());
  for (const Action& action : actions_) {
    if (action.kind == ActionKind::forward) run_forward(action, step);
    else run_backward(action, step, --left[static_cast<std::size_t>(action.chunk)] == 0);
  }
  links_.finish();
  fault_.reach(RunPhase::reduction, step + 1);
  gradients_->finish();
  replicated_.sum();
  if (device_loss_.defined()) loss_sum_ += device_loss_.item<double>();
  const bool owns_loss = stages_.back().is_last() && groups_.coordinates.tensor == 0;
  double sums[] = {owns_loss ? loss_sum_ : 0.0, optimizer_.squared_norm_share()};
  if (fault_.spoils_loss(step + 1)) sums[0] = std::numeric_limits<double>::quiet_NaN();
  Handle call = world_.all_reduce(view(sums));
  timer_.wait(call, timer_.component("other"));
  StepResult result;
  result.tokens = feed_.useful_tokens(step);
  result.loss = sums[0] / static_cast<double>(feed_.targets(step));
  result.gradient_norm = std::sqrt(sums[1]);
  return result;
}

void RankTrainer::update(std::int64_t step, StepResult& result) {
  result.learning_rate = learning_rate(plan_.optimizer, step, plan_.train.steps);
  const double clip = plan_.optimizer.clip_gradient_norm;
  const double scale = clip > 0 ? std::min(1.0, clip / (result.gradient_norm + 1e-6)) : 1.0;
  fault_.reach(RunPhase::optimizer, step + 1);
  optimizer_.update(step + 1, result.learning_rate, scale);
}

/// All ranks know of it; one throws, and the others learn it from their next call, so that it is reported once.
void RankTrainer::end_run(std::int64_t step, const char* quantity, double value) {
  if (world_.rank() != 0) world_.barrier().wait();
  throw RunError(
      fmt::format("the {} of step {} is {}; a lower optimizer.learning_rate or more optimizer.warmup_steps "
                  "may help",
                  quantity, step, value));
}

StepResult RankTrainer::step(std::int64_t step) {
  timer_.begin_step();
  StepResult result = forward_backward(step);
  if (!std::isfinite(result.loss)) end_run(step + 1, "loss", result.loss);
  if (!std::isfinite(result.gradient_norm)) end_run(step + 1, "gradient norm", result.gradient_norm);
  update(step, result);
  result.times = timer_.end_step();
  return result;
}

}  // namespace reckon
