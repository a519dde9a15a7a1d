#include "cost_model/budget_solver.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "cost_model/budget_stage.h"
#include "cost_model/estimate_op_times.h"
#include "cost_model/gradient_error.h"
#include "cost_model/memory.h"
#include "cost_model/step_time.h"
#include "plan/step_documents.h"

namespace reckon {

namespace {

/// The plan with nothing decided: everything kept as computed.
Plan undecided(const Plan& plan) {
  Plan kept = plan;
  kept.activations.classes.clear();
  kept.activations.classes_by_stage.clear();
  kept.activations.bits_by_stage.clear();
  kept.activations.stored = tensor_format(plan);
  kept.activations.recompute = Recompute::none;
  kept.activations.recompute_layers.clear();
  return kept;
}

StagePolicy with_option(StagePolicy policy, const BudgetKnob& knob, const ClassPolicy& option) {
  for (const ActivationClass one : knob.classes) policy.classes[one] = option;
  return policy;
}

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

struct Goal {
  Bytes limit;
  double error_weight = 0;
};

/// A twentieth less memory.
Goal tighter(const Goal& goal) {
  return {goal.limit - Bytes(std::max<std::int64_t>(1, goal.limit.value / 20)), goal.error_weight};
}

class BudgetSolver {
 public:
  explicit BudgetSolver(const Plan& plan)
      : asked_(plan),
        kept_(undecided(plan)),
        work_(planned_attention_work(plan)),
        times_(estimate_op_times(kept_, work_)),
        knobs_(budget_knobs(plan)),
        unlimited_(step_time(kept_, times_).total),
        prices_(kept_, work_, times_) {
    for (std::int64_t stage = 0; stage < plan.parallel.pipeline; ++stage) stages_.emplace_back(kept_, stage, prices_);
  }
  BudgetSolver(const BudgetSolver&) = delete;  // its parts refer to each other
  BudgetSolver& operator=(const BudgetSolver&) = delete;

  /// The best policies under `limit`; their exact price.
  struct Solution {
    std::vector<StagePolicy> policies;
    BudgetPoint point;
  };
  Solution solve(const Goal& goal) const {
    Solution best = descended(goal);
    // What fits into less fits too, and a local search may find it the better one.
    Solution smaller = descended(tighter(goal));
    smaller.point = priced("optimal", smaller.policies, goal);
    if (better(smaller.point, best.point)) best = std::move(smaller);
    for (const auto& [name, policies] : references(goal.limit)) {
      const BudgetPoint point = priced(name, policies, goal);
      if (better(point, best.point)) best = {policies, point};
    }
    best.point.name = "optimal";
    return best;
  }

  SolvedBudget solved(bool with_front) const {
    const Goal goal{memory_limit(asked_), asked_.activations.error_weight};
    Solution best = solve(goal);
    SolvedBudget solved{with_policies(kept_, best.policies), {}};
    BudgetResult& result = solved.result;
    result.limit = goal.limit;
    result.error_weight = goal.error_weight;
    result.unlimited = unlimited_;
    result.chosen = best.point;
    for (const StagePolicy& policy : best.policies) result.by_stage.push_back(describe(policy, tensor_format(kept_)));
    for (const auto& [name, policies] : references(goal.limit))
      result.references.push_back(priced(name, policies, goal));
    if (!with_front) return solved;
    result.pareto = front(goal);
    const Goal less = tighter(goal);
    const BudgetPoint with_less = solve(less).point;
    if (with_less.fits && best.point.fits)
      result.seconds_per_gib = std::max(0.0, with_less.cost - best.point.cost) /
                               (static_cast<double>((goal.limit - less.limit).value) / kGiB);
    return solved;
  }

 private:
  using Named = std::pair<std::string, std::vector<StagePolicy>>;

  /// Seconds that a stage's policy costs the step, if all stages were like it.
  double stage_cost(std::size_t stage, const StagePrice& price, const Goal& goal) const {
    const auto turns = static_cast<double>(kept_.micro_batches() + kept_.parallel.pipeline - 1);
    const auto layers = static_cast<double>(std::max<std::int64_t>(1, stages_[stage].layers()));
    return turns * price.busy.value + error_cost(std::sqrt(price.squared_error / layers), goal);
  }
  double error_cost(double error, const Goal& goal) const { return goal.error_weight * unlimited_.value * error; }

  static bool better(const BudgetPoint& a, const BudgetPoint& b) {
    if (a.fits != b.fits) return a.fits;
    return a.fits ? a.cost < b.cost : a.memory < b.memory;
  }

  /// Exact: the whole plan's step time, memory with the allocator's slack, and error.
  BudgetPoint priced(std::string name, const std::vector<StagePolicy>& policies, const Goal& goal) const {
    const Plan plan = with_policies(kept_, policies);
    BudgetPoint point;
    point.name = std::move(name);
    point.fits = true;
    for (const StageProfile& stage : predict_memory(plan, work_)) {
      const Bytes need = memory_need(plan, stage.memory);
      point.memory = std::max(point.memory, need);
      point.fits = point.fits && need <= goal.limit;
    }
    point.step = step_time(plan, times_).total;
    point.gradient_error = predicted_gradient_error(plan);
    point.cost = point.step.value + error_cost(point.gradient_error, goal);
    return point;
  }

  /// Published rules as policies of this plan.
  std::vector<Named> references(Bytes limit) const {
    std::vector<Named> named;
    Plan agoq = kept_;
    agoq.activations.stored =
        is_block_scaled(asked_.activations.stored) ? asked_.activations.stored : NumberFormat::fp4_e2m1;
    const std::vector<int> bits = automatic_bits(agoq);
    std::vector<StagePolicy> rule, layers;
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      rule.push_back(stages_[stage].fitted(agoq_policy(with_bits(agoq.activations.stored, bits.at(stage))), limit));
      layers.push_back(stages_[stage].fitted({}, limit));
    }
    named.emplace_back("AGoQ's rule", std::move(rule));
    named.emplace_back("Megatron's layers", std::move(layers));
    return named;
  }

  StagePolicy agoq_policy(NumberFormat format) const {
    using enum ActivationClass;
    StagePolicy policy;
    for (const BudgetKnob& knob : knobs_)
      for (const ActivationClass one : knob.classes) {
        if (one == norm_input || one == gate || one == up || one == ffn_hidden || one == expert_input || one == latent)
          policy.classes[one] = {false, format};
        if (one == qkv_input || one == ffn_input || one == down_input) policy.classes[one] = {true, NumberFormat::bf16};
      }
    return policy;
  }

  /// Each stage by itself, from several starts; then the limit of a stage whose allocator needs more is lowered.
  Solution descended(const Goal& goal) const {
    std::vector<Goal> goals(stages_.size(), goal);
    Solution best;
    for (int round = 0; round < 4; ++round) {
      std::vector<StagePolicy> policies;
      for (std::size_t stage = 0; stage < stages_.size(); ++stage)
        policies.push_back(best_of_stage(stage, goals[stage]));
      const BudgetPoint point = priced("optimal", policies, goal);
      if (round == 0 || better(point, best.point)) best = {policies, point};
      if (point.fits) return best;
      lower_limits(policies, goal.limit, goals);
    }
    return best;
  }

  void lower_limits(const std::vector<StagePolicy>& policies, Bytes limit, std::vector<Goal>& goals) const {
    const Plan plan = with_policies(kept_, policies);
    for (const StageProfile& stage : predict_memory(plan, work_)) {
      const Bytes excess = memory_need(plan, stage.memory) - limit;
      if (excess > Bytes(0)) goals[static_cast<std::size_t>(stage.stage)].limit -= excess;
    }
  }

  StagePolicy best_of_stage(std::size_t stage, const Goal& goal) const {
    StagePolicy lossless, smallest;
    for (const BudgetKnob& knob : knobs_) {
      using enum ActivationClass;
      const ActivationClass first = knob.classes.front();
      if (first == qkv_input || first == ffn_input || first == down_input)
        lossless = with_option(lossless, knob, knob.options.back());
      smallest = with_option(smallest, knob, knob.options[knob.options.size() - 2]);
    }
    StagePolicy best;
    std::optional<double> lowest;
    for (const StagePolicy& start :
         {StagePolicy{}, lossless, agoq_policy(offered(4)), agoq_policy(offered(6)), smallest}) {
      auto [policy, cost] = descend(stage, start, goal);
      if (lowest && cost >= *lowest) continue;
      best = std::move(policy);
      lowest = cost;
    }
    return best;
  }

  NumberFormat offered(int bits) const {
    for (const ClassPolicy& option : knobs_.front().options)
      if (!option.recompute && payload_bits(option.format) == bits) return option.format;
    return NumberFormat::fp4_e2m1;
  }

  /// Cost of the policy with the fewest recomputed layers that fit; infeasible policies rank by their excess.
  std::pair<StagePolicy, double> judged(std::size_t stage, const StagePolicy& policy, const Goal& goal) const {
    StagePolicy fitted = stages_[stage].fitted(policy, goal.limit);
    const StagePrice price = stages_[stage].price(fitted);
    const double excess = static_cast<double>(std::max<std::int64_t>(0, (price.memory - goal.limit).value));
    return {std::move(fitted), excess > 0 ? 1e9 + excess : stage_cost(stage, price, goal)};
  }

  /// Turns one knob at a time to where it helps most, until none does.
  std::pair<StagePolicy, double> descend(std::size_t stage, const StagePolicy& start, const Goal& goal) const {
    auto best = judged(stage, start, goal);
    for (bool improved = true; improved;) {
      improved = false;
      for (const BudgetKnob& knob : knobs_)
        for (const ClassPolicy& option : knob.options) {
          StagePolicy turned = with_option(best.first, knob, option);
          if (turned.classes == best.first.classes) continue;
          auto tried = judged(stage, turned, goal);
          if (tried.second >= best.second * (1.0 - 1e-12)) continue;
          best = std::move(tried);
          improved = true;
        }
    }
    return best;
  }

  /// Solutions under a ladder of limits and weights, and those that nothing else beats.
  std::vector<BudgetPoint> front(const Goal& goal) const {
    std::vector<BudgetPoint> points;
    for (const double weight : {0.0, goal.error_weight, 10.0 * goal.error_weight})
      for (int twentieths = 10; twentieths <= 24; twentieths += 2) {
        const Solution solution = descended({goal.limit / 20 * twentieths, weight});
        if (!solution.point.fits) continue;
        std::string name;
        for (const StagePolicy& policy : solution.policies)  // the first stage keeps the most micro-batches
          if (name.empty()) name = describe(policy, tensor_format(kept_));
        points.push_back(priced(name, solution.policies, goal));
      }
    return undominated(std::move(points));
  }

  static bool dominates(const BudgetPoint& a, const BudgetPoint& b) {
    const bool no_worse = a.memory <= b.memory && a.step <= b.step && a.gradient_error <= b.gradient_error;
    return no_worse && (a.memory < b.memory || a.step < b.step || a.gradient_error < b.gradient_error);
  }
  static std::vector<BudgetPoint> undominated(std::vector<BudgetPoint> points) {
    std::vector<BudgetPoint> kept;
    for (const BudgetPoint& point : points) {
      const bool beaten =
          std::any_of(points.begin(), points.end(), [&](const BudgetPoint& p) { return dominates(p, point); });
      const bool known = std::any_of(kept.begin(), kept.end(), [&](const BudgetPoint& p) {
        return p.memory == point.memory && p.step.value == point.step.value;
      });
      if (!beaten && !known) kept.push_back(point);
    }
    std::sort(kept.begin(), kept.end(), [](const BudgetPoint& a, const BudgetPoint& b) { return a.memory < b.memory; });
    return kept;
  }

  Plan asked_, kept_;
  AttentionWork work_;
  OpTimes times_;
  std::vector<BudgetKnob> knobs_;
  Seconds unlimited_;
  mutable PolicyPrices prices_;
  std::vector<BudgetStage> stages_;
};

}  // namespace

SolvedBudget solve_budget(const Plan& plan, bool with_front) {
  return BudgetSolver(plan).solved(with_front);
}

}  // namespace reckon
