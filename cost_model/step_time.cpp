#include "cost_model/step_time.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

#include "cost_model/bucket_walk.h"
#include "cost_model/stage_work.h"
#include "plan/state_calls.h"

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
double input_ready(const Plan& plan, const std::vector<Seconds>& edges, EndTimes& ends, std::int64_t stage,
                   const Action& action) {
  const std::int64_t stages = plan.parallel.pipeline;
  const std::int64_t here = action.chunk * stages + stage;
  const auto delay = [&](std::int64_t edge) { return edges[static_cast<std::size_t>(edge)].value; };
  if (action.kind == ActionKind::forward) {
    if (here == 0) return 0.0;
    const double before = ends.at(ActionKind::forward, here - 1, action.micro_batch);
    return before == kNotYet ? kNotYet : before + delay((here - 1) % stages);
  }
  if (here == plan.virtual_stages() - 1) return ends.at(ActionKind::forward, here, action.micro_batch);
  const double after = ends.at(ActionKind::backward, here + 1, action.micro_batch);
  return after == kNotYet ? kNotYet : after + delay(stage);
}

Seconds busy(const StageWork& work, std::int64_t micro_batches) {
  Seconds total(0.0);
  for (const ActionTime& action : work.forward) total += action.elapsed;
  for (const ActionTime& action : work.backward) total += action.elapsed;
  return total * static_cast<double>(micro_batches);
}

/// The actions of all stages, and the reductions that remain behind them.
struct PipelineWalk {
  std::vector<Seconds> ends;  // of each stage's last action
  std::vector<BucketWalk> buckets;
};

PipelineWalk walk_pipeline(const Plan& plan, const OpTimes& times, const std::vector<StageWork>& works,
                           const OverlapRules& rules, const std::vector<Seconds>& edges) {
  PipelineWalk walk;
  for (std::size_t stage = 0; stage < works.size(); ++stage) {
    const Seconds reduce = plan.parallel.zero >= 2 ? Seconds(0.0) : times.gradient_reduce[stage];
    walk.buckets.emplace_back(rules, works[stage], reduce, times.reduce_calls[stage], plan.micro_batches());
  }
  walk.ends = pipeline_ends(plan, edges, [&](std::int64_t stage, const Action& action, Seconds idle) {
    return walk.buckets[static_cast<std::size_t>(stage)].run(action, idle);
  });
  return walk;
}

/// When every stage has its reduced gradients: its last action, the buckets left, and the tied table's exchange.
Seconds gradients_ready(const OpTimes& times, const PipelineWalk& walk) {
  std::vector<Seconds> reduced;
  for (std::size_t stage = 0; stage < walk.ends.size(); ++stage)
    reduced.push_back(walk.ends[stage] + walk.buckets[stage].left());
  const Seconds ready = *std::max_element(reduced.begin(), reduced.end());
  const Seconds tied = std::max(reduced.front(), reduced.back()) + times.tied_table_reduce;
  return times.tied_table_reduce.value > 0.0 ? std::max(ready, tied) : ready;
}

Seconds largest(const std::vector<Seconds>& values) {
  return *std::max_element(values.begin(), values.end());
}

/// Components of rank `stage`: its actions and its reduction.
TimeLedger stage_ledger(const Plan& plan, const OpTimes& times, const StageWork& work, const BucketWalk& buckets,
                        std::size_t stage) {
  TimeLedger ledger;
  const auto micro_batches = static_cast<double>(plan.micro_batches());
  for (const ActionTime& action : work.forward) ledger.add(action.ledger, micro_batches);
  for (const ActionTime& action : work.backward) ledger.add(action.ledger, micro_batches);
  if (plan.parallel.zero < 2 && times.gradient_reduce[stage].value > 0.0)
    ledger.add(std::string(reduction_component(plan)), times.gradient_reduce[stage], buckets.slowed() + buckets.left());
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

std::vector<Seconds> pipeline_ends(const Plan& plan, const std::vector<Seconds>& edges,
                                   const ActionDuration& duration) {
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
        const double ready = input_ready(plan, edges, ends, stage, action);
        if (ready == kNotYet) break;
        const double idle = std::max(0.0, ready - free[rank]);
        free[rank] += idle + duration(stage, action, Seconds(idle)).value;
        ends.at(action.kind, action.chunk * stages + stage, action.micro_batch) = free[rank];
      }
    }
    if (left == before) throw std::logic_error("the pipeline schedule deadlocks");
  }
  std::vector<Seconds> result;
  for (const double end : free) result.emplace_back(end);
  return result;
}

double busy_ranks(const Plan& plan, const OpTimes& times) {
  if (plan.parallel.pipeline == 1) return static_cast<double>(plan.world_size());
  const std::vector<StageWork> works = stage_works(plan, times);
  Seconds sum(0.0);
  for (std::size_t stage = 0; stage < works.size(); ++stage) {
    sum += busy(works[stage], plan.micro_batches()) + times.optimizer[stage] + times.parameter_gather[stage];
    if (plan.parallel.zero < 2) sum += times.gradient_reduce[stage];
  }
  const double ranks_per_stage = static_cast<double>(plan.world_size() / plan.parallel.pipeline);
  return ranks_per_stage * (sum / step_time(plan, times).total);
}

StepTime step_time(const Plan& plan, const OpTimes& times) {
  const std::vector<StageWork> works = stage_works(plan, times);
  const OverlapRules rules = OverlapLinks(plan).rules();
  const PipelineWalk walk = walk_pipeline(plan, times, works, rules, times.pipeline_send);
  const Seconds ready = gradients_ready(times, walk);

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
  TimeLedger ledger = stage_ledger(plan, times, works[slowest], walk.buckets[slowest], slowest);
  if (plan.parallel.pipeline > 1) {
    // Waiting: without the delays between stages it is bubble, the rest is owed to the messages.
    const Seconds waiting = ready - ledger.exposed();
    const std::vector<Seconds>& edges = times.pipeline_send;
    const Seconds delays = std::accumulate(edges.begin(), edges.end() - 1, Seconds(0.0));
    const std::vector<Seconds> none(edges.size(), Seconds(0.0));
    const Seconds undelayed = gradients_ready(times, walk_pipeline(plan, times, works, rules, none));
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
  step.bubble_fraction =
      plan.parallel.pipeline > 1 ? std::max(0.0, 1.0 - mean_busy / step.total - end_of_step(times) / step.total) : 0.0;
  for (const auto& [component, entry] : ledger.entries())
    step.components.push_back({component, entry.busy, entry.exposed, Seconds(0.0)});
  return step;
}

}  // namespace reckon
