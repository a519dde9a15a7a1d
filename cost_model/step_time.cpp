#include "cost_model/step_time.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

#include "plan/pipeline_schedule.h"

namespace reckon {

namespace {

constexpr double kNotYet = -1.0;

/// End times of forward and backward of every (virtual stage, micro-batch).
class EndTimes {
 public:
  EndTimes(std::int64_t virtual_stages, std::int64_t micro_batches)
      : micro_batches_(micro_batches),
        forward_(static_cast<std::size_t>(virtual_stages * micro_batches), kNotYet),
        backward_(forward_) {}

  double& at(ActionKind kind, std::int64_t virtual_stage, int micro_batch) {
    auto& ends = kind == ActionKind::forward ? forward_ : backward_;
    return ends[static_cast<std::size_t>(virtual_stage * micro_batches_ + micro_batch)];
  }

 private:
  std::int64_t micro_batches_;
  std::vector<double> forward_, backward_;
};

/// Start time that an action's inputs allow, or kNotYet while the stage before (after) it has not finished.
double input_ready(const Plan& plan, const PipelineTimes& times, EndTimes& ends, std::int64_t stage,
                   const Action& action) {
  const std::int64_t stages = plan.parallel.pipeline;
  const std::int64_t here = action.chunk * stages + stage;
  const auto delay = [&](std::int64_t edge) { return times.edges[static_cast<std::size_t>(edge)].value; };
  if (action.kind == ActionKind::forward) {
    if (here == 0) return 0.0;
    const double before = ends.at(ActionKind::forward, here - 1, action.micro_batch);
    return before == kNotYet ? kNotYet : before + delay((here - 1) % stages);
  }
  if (here == plan.virtual_stages() - 1) return ends.at(ActionKind::forward, here, action.micro_batch);
  const double after = ends.at(ActionKind::backward, here + 1, action.micro_batch);
  return after == kNotYet ? kNotYet : after + delay(stage);
}

Seconds duration(const Plan& plan, const PipelineTimes& times, std::int64_t stage, const Action& action) {
  const auto rank = static_cast<std::size_t>(stage), chunk = static_cast<std::size_t>(action.chunk);
  if (action.kind == ActionKind::forward) return times.forward[rank][chunk];
  const bool last = action.micro_batch == plan.micro_batches() - 1;
  return (last ? times.last_backward : times.backward)[rank][chunk];
}

Seconds busy(const StageWork& work, std::int64_t micro_batches) {
  Seconds total(0.0);
  for (const ActionTime& action : work.forward) total += action.elapsed;
  for (const ActionTime& action : work.backward) total += action.elapsed;
  return total * static_cast<double>(micro_batches);
}

PipelineTimes pipeline_times(const OpTimes& times, const std::vector<StageWork>& works) {
  PipelineTimes pipeline;
  pipeline.edges = times.pipeline_send;
  const auto elapsed = [](const std::vector<ActionTime>& actions) {
    std::vector<Seconds> seconds;
    for (const ActionTime& action : actions) seconds.push_back(action.elapsed);
    return seconds;
  };
  for (const StageWork& work : works) {
    pipeline.forward.push_back(elapsed(work.forward));
    pipeline.backward.push_back(elapsed(work.backward));
    pipeline.last_backward.push_back(work.last_backward);
  }
  return pipeline;
}

/// When every stage has its reduced gradients: its last action, the buckets left, and the tied table's exchange.
Seconds gradients_ready(const OpTimes& times, const std::vector<StageWork>& works, const std::vector<Seconds>& ends) {
  std::vector<Seconds> reduced;
  for (std::size_t stage = 0; stage < ends.size(); ++stage) reduced.push_back(ends[stage] + works[stage].unreduced);
  const Seconds ready = *std::max_element(reduced.begin(), reduced.end());
  const Seconds tied = std::max(reduced.front(), reduced.back()) + times.tied_table_reduce;
  return times.tied_table_reduce.value > 0.0 ? std::max(ready, tied) : ready;
}

Seconds largest(const std::vector<Seconds>& values) {
  return *std::max_element(values.begin(), values.end());
}

std::string reduction_name(const Plan& plan) {
  if (plan.parallel.zero >= 1) return "gradient.reduce_scatter";
  return plan.gradients.reduce == GradientReduce::all_to_all_sum ? "gradient.all_to_all" : "gradient.all_reduce";
}

/// Components of rank `stage`: its actions, its reduction, waiting, and the common end of the step.
TimeLedger stage_ledger(const Plan& plan, const OpTimes& times, const StageWork& work, const PipelineTimes& pipeline,
                        std::size_t stage) {
  TimeLedger ledger;
  const auto micro_batches = static_cast<double>(plan.micro_batches());
  for (const ActionTime& action : work.forward) ledger.add(action.ledger, micro_batches);
  for (const ActionTime& action : work.backward) ledger.add(action.ledger, micro_batches);
  if (plan.parallel.zero < 2) {
    Seconds exposed = work.unreduced;
    for (std::size_t chunk = 0; chunk < work.backward.size(); ++chunk)
      exposed += pipeline.last_backward[stage][chunk] - pipeline.backward[stage][chunk];
    if (times.gradient_reduce[stage].value > 0.0)
      ledger.add(reduction_name(plan), times.gradient_reduce[stage], exposed);
  }
  return ledger;
}

/// Optimizer and gather of the stage that takes longest for both.
Seconds end_of_step(const OpTimes& times) {
  Seconds longest(0.0);
  for (std::size_t stage = 0; stage < times.optimizer.size(); ++stage)
    longest = std::max(longest, times.optimizer[stage] + times.parameter_gather[stage]);
  return longest;
}

void add_end_of_step(const OpTimes& times, std::size_t stage, TimeLedger& ledger) {
  const Seconds optimizer = std::min(largest(times.optimizer), end_of_step(times));
  ledger.add("optimizer", times.optimizer[stage], optimizer);
  if (largest(times.parameter_gather).value > 0.0)
    ledger.add("parameter.all_gather", times.parameter_gather[stage], end_of_step(times) - optimizer);
}

}  // namespace

std::vector<Seconds> pipeline_ends(const Plan& plan, const PipelineTimes& times) {
  const std::int64_t stages = plan.parallel.pipeline, micro_batches = plan.micro_batches();
  std::vector<std::vector<Action>> actions;
  for (std::int64_t stage = 0; stage < stages; ++stage)
    actions.push_back(pipeline_actions(plan.parallel.schedule, static_cast<int>(stages), static_cast<int>(stage),
                                       static_cast<int>(plan.parallel.chunks), static_cast<int>(micro_batches)));
  EndTimes ends(plan.virtual_stages(), micro_batches);
  std::vector<std::size_t> next(static_cast<std::size_t>(stages), 0);
  std::vector<double> free(static_cast<std::size_t>(stages), 0.0);
  std::size_t left = 0;
  for (const auto& list : actions) left += list.size();
  while (left > 0) {
    const std::size_t before = left;
    for (std::int64_t stage = 0; stage < stages; ++stage) {
      const auto rank = static_cast<std::size_t>(stage);
      for (; next[rank] < actions[rank].size(); ++next[rank], --left) {
        const Action& action = actions[rank][next[rank]];
        const double ready = input_ready(plan, times, ends, stage, action);
        if (ready == kNotYet) break;
        free[rank] = std::max(free[rank], ready) + duration(plan, times, stage, action).value;
        ends.at(action.kind, action.chunk * stages + stage, action.micro_batch) = free[rank];
      }
    }
    if (left == before) throw std::logic_error("the pipeline schedule deadlocks");
  }
  std::vector<Seconds> result;
  for (const double end : free) result.emplace_back(end);
  return result;
}

StepTime step_time(const Plan& plan, const OpTimes& times) {
  const std::vector<StageWork> works = stage_works(plan, times);
  PipelineTimes pipeline = pipeline_times(times, works);
  const Seconds ready = gradients_ready(times, works, pipeline_ends(plan, pipeline));

  std::size_t slowest = 0;
  Seconds most(0.0), mean_busy(0.0);
  for (std::size_t stage = 0; stage < works.size(); ++stage) {
    const Seconds own = busy(works[stage], plan.micro_batches());
    mean_busy += own * (1.0 / static_cast<double>(works.size()));
    if (own > most) {
      most = own;
      slowest = stage;
    }
  }
  TimeLedger ledger = stage_ledger(plan, times, works[slowest], pipeline, slowest);
  if (plan.parallel.pipeline > 1) {
    // Waiting: without the delays between stages it is bubble, the rest is owed to the messages.
    const Seconds waiting = ready - ledger.exposed();
    const Seconds delays = std::accumulate(pipeline.edges.begin(), pipeline.edges.end() - 1, Seconds(0.0));
    std::fill(pipeline.edges.begin(), pipeline.edges.end(), Seconds(0.0));
    const Seconds undelayed = gradients_ready(times, works, pipeline_ends(plan, pipeline));
    const Seconds owed = std::min(waiting, ready - undelayed);
    if (delays.value > 0.0) {
      const double messages = 2.0 * static_cast<double>(plan.micro_batches() * plan.parallel.chunks);
      ledger.add("pipeline.send_receive", times.pipeline_send.front() * messages, owed);
    }
    ledger.add("bubble", waiting - owed, waiting - owed);
  } else if (times.tied_table_reduce.value > 0.0) {
    throw std::logic_error("a single stage has no tied copy to reduce");
  }
  add_end_of_step(times, slowest, ledger);

  StepTime step;
  step.total = ready + end_of_step(times);
  step.slowest_stage = static_cast<std::int64_t>(slowest);
  step.bubble_fraction =
      plan.parallel.pipeline > 1 ? std::max(0.0, 1.0 - mean_busy / step.total - end_of_step(times) / step.total) : 0.0;
  for (const auto& [component, entry] : ledger.entries())
    step.components.push_back({component, entry.busy, entry.exposed, Seconds(0.0)});
  return step;
}

}  // namespace reckon
