#include "runtime/train/rank_trainer.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plan/errors.h"
#include "runtime/train/memory_account.h"
#include "runtime/train/ops/dispatch.h"

namespace reckon {
namespace {

at::Tensor row_positions(const Plan& plan) {
  const std::int64_t length = plan.batch.sequence_length;
  return at::arange(length, at::kInt).repeat({plan.batch.micro_batch});
}

std::vector<VirtualStage> virtual_stages(const RankModel& model, const ParameterStore& store) {
  std::vector<VirtualStage> stages;
  for (std::int64_t chunk = 0; chunk < model.plan.parallel.chunks; ++chunk) stages.emplace_back(model, store, chunk);
  return stages;
}

double tokens_of_step(const Plan& plan) {
  return static_cast<double>(plan.batch.global_batch * plan.batch.sequence_length);
}

}  // namespace

RankTrainer::RankTrainer(const Plan& plan, Communicator& world, const TokenStream& tokens)
    : plan_(plan),
      world_(world),
      tokens_(tokens),
      groups_(plan, world, timer_),
      model_(plan, groups_.coordinates, timer_, groups_.tensor.get()),
      store_(parameter_layout(plan, groups_.coordinates), model_.compute, model_.accumulator, plan.train.seed),
      stages_(virtual_stages(model_, store_)),
      actions_(pipeline_actions(plan.parallel.schedule, static_cast<int>(plan.parallel.pipeline),
                                static_cast<int>(groups_.coordinates.pipeline), static_cast<int>(plan.parallel.chunks),
                                static_cast<int>(plan.micro_batches()))),
      reduction_(store_.gradients(),
                 flat_pieces(store_.layout(), plan.gradients.bucket, store_.gradients().element_size()),
                 groups_.weight_holders(plan)),
      optimizer_(plan, store_, groups_.weight_holders(plan), groups_.coordinates.tensor == 0, timer_),
      positions_(row_positions(plan)) {}

MicroBatch RankTrainer::make_batch(std::int64_t step, int micro_batch) const {
  const std::int64_t rows = plan_.batch.micro_batch, length = plan_.batch.sequence_length;
  MicroBatch batch;
  {
    const CategoryScope scope(MemoryCategory::activations);
    batch.tokens = at::empty({rows * length}, at::kInt);
    batch.targets = at::empty({rows * length}, at::kInt);
  }
  batch.positions = positions_;
  batch.loss_scale = 1.0 / tokens_of_step(plan_);
  std::vector<std::int32_t> row(static_cast<std::size_t>(length + 1));
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t sample = (micro_batch * plan_.parallel.data + groups_.coordinates.data) * rows + r;
    tokens_.read(step, sample, row);
    std::copy(row.begin(), row.end() - 1, pointer<std::int32_t>(batch.tokens) + r * length);
    std::copy(row.begin() + 1, row.end(), pointer<std::int32_t>(batch.targets) + r * length);
  }
  return batch;
}

void RankTrainer::run_forward(const Action& action, std::int64_t step) {
  StageActivations& activations = in_flight_[{action.chunk, action.micro_batch}];
  peak_in_flight_ = std::max(peak_in_flight_, in_flight_.size());
  activations.batch = make_batch(step, action.micro_batch);
  const VirtualStage& stage = stages_[static_cast<std::size_t>(action.chunk)];
  stage.forward({}, activations);
  if (stage.is_last()) loss_sum_ += activations.batch.loss_sum;
}

void RankTrainer::run_backward(const Action& action, bool last_micro_batch) {
  const auto found = in_flight_.find({action.chunk, action.micro_batch});
  stages_[static_cast<std::size_t>(action.chunk)].backward({}, found->second, [&](std::int64_t offset) {
    if (last_micro_batch) reduction_.complete_down_to(offset);
  });
  in_flight_.erase(found);
}

StepResult RankTrainer::forward_backward(std::int64_t step) {
  {
    const StepTimer::Span span(timer_, timer_.component("optimizer"));
    store_.gradients().zero_();
  }
  loss_sum_ = 0;
  std::vector<std::int64_t> left(stages_.size(), plan_.micro_batches());
  for (const Action& action : actions_) {
    if (action.kind == ActionKind::forward) run_forward(action, step);
    else run_backward(action, --left[static_cast<std::size_t>(action.chunk)] == 0);
  }
  reduction_.finish();
  const bool owns_loss = stages_.back().is_last() && groups_.coordinates.tensor == 0;
  double sums[] = {owns_loss ? loss_sum_ : 0.0, optimizer_.squared_norm_share()};
  Handle call = world_.all_reduce(view(sums));
  timer_.wait(call, timer_.component("other"));
  StepResult result;
  result.loss = sums[0] / tokens_of_step(plan_);
  result.gradient_norm = std::sqrt(sums[1]);
  return result;
}

void RankTrainer::update(std::int64_t step, StepResult& result) {
  result.learning_rate = learning_rate(plan_.optimizer, step, plan_.train.steps);
  const double clip = plan_.optimizer.clip_gradient_norm;
  const double scale = clip > 0 ? std::min(1.0, clip / (result.gradient_norm + 1e-6)) : 1.0;
  optimizer_.update(step + 1, result.learning_rate, scale);
}

/// All ranks know of it; one throws, and the others learn it from their next call, so that it is reported once.
void RankTrainer::end_run(std::int64_t step, double loss) {
  if (world_.rank() != 0) world_.barrier().wait();
  throw RunError(
      fmt::format("the loss of step {} is {}; a lower optimizer.learning_rate or more optimizer.warmup_steps "
                  "may help",
                  step, loss));
}

StepResult RankTrainer::step(std::int64_t step) {
  timer_.begin_step();
  StepResult result = forward_backward(step);
  if (!std::isfinite(result.loss)) end_run(step + 1, result.loss);
  update(step, result);
  result.times = timer_.end_step();
  return result;
}

}  // namespace reckon
