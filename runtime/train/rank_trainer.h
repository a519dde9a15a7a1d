// One rank of a training run: its model part, its groups, and the execution of one optimizer step.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "plan/pipeline_schedule.h"
#include "plan/plan.h"
#include "runtime/comm/communicator.h"
#include "runtime/train/gradient_accumulation.h"
#include "runtime/train/input/row_feed.h"
#include "runtime/train/optimizer.h"
#include "runtime/train/pipeline_links.h"
#include "runtime/train/rank_groups.h"
#include "runtime/train/rehearsed_fault.h"
#include "runtime/train/replicated_gradients.h"
#include "runtime/train/virtual_stage.h"

namespace reckon {

struct StepResult {
  double loss = 0;           // mean over the tokens of all ranks that have a target, before the update
  double gradient_norm = 0;  // of the gradient of that mean, before clipping
  double learning_rate = 0;
  std::int64_t tokens = 0;  // of all ranks, without padding
  StepTimes times;          // of this rank
};

class RankTrainer {
 public:
  /// Allocates weights, gradients and optimizer states on the thread's memory account. `plan` and `world` must outlive
  /// it. All ranks construct it together.
  RankTrainer(const Plan& plan, Communicator& world, const TokenStream& tokens, const RehearsedFault& fault = {},
              TrainDevice device = {});

  /// Step `step`, counted from 0. All ranks call it together.
  StepResult step(std::int64_t step);

  /// The two halves of a step, for tests. After the first, the gradient buffer holds the sum over the group (with ZeRO,
  /// this rank's shard of it), and loss and gradient norm are known.
  StepResult forward_backward(std::int64_t step);
  void update(std::int64_t step, StepResult& result);

  ParameterStore& parameters() { return store_; }
  Communicator& world() { return world_; }
  Optimizer& optimizer() { return optimizer_; }
  StepTimer& timer() { return timer_; }
  RankGroups& groups() { return groups_; }
  const RehearsedFault& fault() const { return fault_; }
  /// Most micro-batches whose activations were held at once, chunks counted as parts of one.
  double peak_in_flight() const { return static_cast<double>(peak_in_flight_) / static_cast<double>(stages_.size()); }

 private:
  using Place = std::pair<int, int>;  // chunk, micro-batch

  /// Numbers of the host on the rank's device.
  at::Tensor placed(const std::vector<std::int32_t>& numbers) const;
  at::Tensor row_positions();
  MicroBatch make_batch(std::int64_t step, int micro_batch);
  void run_forward(const Action& action, std::int64_t step);
  void run_backward(const Action& action, std::int64_t step, bool last_micro_batch);
  [[noreturn]] void end_run(std::int64_t step, const char* quantity, double value);

  const Plan& plan_;
  Communicator& world_;
  const RehearsedFault fault_;
  StepTimer timer_;
  RankGroups groups_;
  RowFeed feed_;
  RankModel model_;
  ParameterStore store_;
  std::unique_ptr<GradientAccumulation> gradients_;
  std::vector<VirtualStage> stages_;  // by chunk
  std::vector<Action> actions_;
  ReplicatedGradients replicated_;
  Optimizer optimizer_;
  at::Tensor positions_;  // place of each token in its row, where every row is one document
  PipelineLinks links_;
  std::map<Place, StageActivations> in_flight_;
  std::size_t peak_in_flight_ = 0;
  double loss_sum_ = 0;
  at::Tensor device_loss_;  // on a device: its part of loss_sum_, [1] fp64 there
};

}  // namespace reckon
