#include "cost_model/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "cost_model/cpu_node.h"
#include "cost_model/estimate_op_times.h"
#include "cost_model/in_parallel.h"
#include "cost_model/knob_steps.h"
#include "cost_model/memory.h"
#include "cost_model/predict.h"
#include "cost_model/search_unit.h"
#include "cost_model/step_time.h"

namespace reckon {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int thread_count(int asked) {
  constexpr int kMost = 256;
  return std::min(kMost, asked > 0 ? asked : static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
}

/// When a search has to end. The last part of its time is for confirming what the enumeration found.
class Deadline {
 public:
  Deadline(Clock::time_point start, Seconds limit) : start_(start), limit_(limit) {}
  bool has_passed(double share = 1.0) const { return limit_.value > 0 && seconds_since(start_) > share * limit_.value; }

 private:
  Clock::time_point start_;
  Seconds limit_;
};

constexpr double kEnumerationShare = 0.6;

struct Enumeration {
  UnitResult sum;
  bool complete = true;
};

Enumeration enumerate(const Plan& base, std::int64_t devices, std::size_t keep, const SearchOptions& options,
                      const Deadline& deadline) {
  const std::vector<Degrees> units = inner_degrees(base, devices);
  const Bytes limit = memory_limit(base);
  const FixedKeys fixed(base, options.fixed);
  const int threads = thread_count(options.threads);
  const std::function<bool()> out_of_time = [&] { return deadline.has_passed(kEnumerationShare); };
  std::vector<std::optional<UnitResult>> results(units.size());
  std::vector<CandidateModel> models(static_cast<std::size_t>(threads), CandidateModel(base, limit));
  std::mutex mutex;
  std::size_t done = 0;
  std::int64_t plans = 0;
  in_parallel(units.size(), threads, [&](std::size_t i, int thread) {
    if (out_of_time()) return;
    results[i] = search_unit(base, units[i], devices, static_cast<std::int64_t>(i), keep, fixed, out_of_time,
                             models[static_cast<std::size_t>(thread)]);
    const std::lock_guard lock(mutex);
    ++done;
    plans += results[i]->enumerated;
    if (options.progress) options.progress(static_cast<double>(done) / static_cast<double>(units.size()), plans);
  });

  Enumeration all;
  for (const auto& unit : results) {  // in the order of the space, whoever computed it
    if (!unit) {
      all.complete = false;
      continue;
    }
    all.complete = all.complete && unit->complete;
    all.sum.enumerated += unit->enumerated;
    all.sum.legal += unit->legal;
    all.sum.fits += unit->fits;
    all.sum.best.insert(all.sum.best.end(), unit->best.begin(), unit->best.end());
    for (const FoundPlan& plan : unit->pareto.plans()) all.sum.pareto.add(plan);
    for (const auto& [reason, rejection] : unit->rejected) {
      const auto [entry, is_new] = all.sum.rejected.try_emplace(reason, rejection);
      if (!is_new) entry->second.count += rejection.count;
    }
  }
  std::sort(all.sum.best.begin(), all.sum.best.end());
  if (all.sum.best.size() > keep) all.sum.best.resize(keep);
  return all;
}

RankedPlan ranked_plan(const Plan& base, const Candidate& candidate, const StepProfile& profile) {
  RankedPlan plan;
  plan.overrides = overrides_of(base, candidate);
  plan.step = profile.step.seconds;
  plan.memory = profile.verdict.need;
  plan.tokens_per_second_per_device = profile.step.tokens_per_second_per_device;
  plan.mfu = profile.step.mfu;
  plan.fit_probability = profile.verdict.probability;
  return plan;
}

struct Confirmed {
  Candidate candidate;
  StepProfile profile;
};

/// Orders found plans by the walked schedule instead of its closed form, as layers were found to fit without slack: the
/// best by the closed form first, as many as there is time for.
void refine_times(const Plan& base, std::vector<FoundPlan>& found, int threads, const Deadline& deadline) {
  in_parallel(found.size(), threads, [&](std::size_t i, int) {
    if (deadline.has_passed(0.5 * (1.0 + kEnumerationShare))) return;
    Plan plan = plan_of(base, found[i].candidate);
    plan.activations.recompute_layers = found[i].recompute_layers;
    plan = resolve(plan);
    found[i].seconds = step_time(plan, estimate_op_times(plan)).total.value;
  });
  std::sort(found.begin(), found.end());
}

/// Plans that fit only without the allocator's slack, by their place in the enumeration.
using RefusedBySlack = std::set<std::int64_t>;

/// Of found plans those that fit with the allocator's slack, by predicted time: the first `most` in the order given.
std::vector<Confirmed> confirm(const Plan& base, const std::vector<FoundPlan>& found, std::size_t most, int threads,
                               const Deadline& deadline, RefusedBySlack& refused) {
  std::vector<Confirmed> confirmed;
  const std::size_t batch = std::max<std::size_t>(most, 8);  // not of the threads: the answer must not depend on them
  for (std::size_t first = 0; first < found.size() && confirmed.size() < most; first += batch) {
    if (deadline.has_passed() && !confirmed.empty()) break;
    std::vector<StepProfile> profiles(std::min(batch, found.size() - first));
    in_parallel(profiles.size(), threads,
                [&](std::size_t i, int) { profiles[i] = predict(resolve(plan_of(base, found[first + i].candidate))); });
    for (std::size_t i = 0; i < profiles.size(); ++i) {
      const FoundPlan& plan = found[first + i];
      if (profiles[i].verdict.fits) confirmed.push_back({plan.candidate, std::move(profiles[i])});
      else refused.insert(plan.order);
    }
  }
  std::stable_sort(confirmed.begin(), confirmed.end(), [](const Confirmed& a, const Confirmed& b) {
    return a.profile.step.seconds < b.profile.step.seconds;
  });
  return confirmed;
}

/// At most `most` of the plans, spread over the front with both ends.
std::vector<FoundPlan> thinned(const std::vector<FoundPlan>& front, std::size_t most) {
  if (front.size() <= most) return front;
  std::vector<FoundPlan> kept;
  for (std::size_t i = 0; i < most; ++i) kept.push_back(front[i * (front.size() - 1) / (most - 1)]);
  return kept;
}

/// Front of confirmed plans, whichever list they were found in.
std::vector<RankedPlan> pareto_plans(const Plan& base, std::vector<Confirmed> confirmed) {
  std::stable_sort(confirmed.begin(), confirmed.end(), [](const Confirmed& a, const Confirmed& b) {
    const Seconds left = a.profile.step.seconds, right = b.profile.step.seconds;
    return left != right ? left < right : a.profile.verdict.need < b.profile.verdict.need;
  });
  std::vector<RankedPlan> front;
  for (const Confirmed& one : confirmed) {
    RankedPlan plan = ranked_plan(base, one.candidate, one.profile);
    if (front.empty() || plan.memory < front.back().memory) front.push_back(std::move(plan));
  }
  for (std::size_t i = 0; i < front.size(); ++i) front[i].rank = static_cast<std::int64_t>(i) + 1;
  return front;
}

std::vector<Rejection> rejections(const Plan& base, const UnitResult& sum) {
  std::vector<Rejection> list;
  for (const auto& [reason, rejection] : sum.rejected)
    list.push_back({reason, rejection.count, text_of(overrides_of(base, rejection.example))});
  std::stable_sort(list.begin(), list.end(), [](const Rejection& a, const Rejection& b) { return a.count > b.count; });
  return list;
}

}  // namespace

SearchResult search(const Plan& asked, const SearchOptions& options) {
  // The closed form orders plans within a few per cent of the walked schedule: many more than asked for are walked.
  constexpr std::size_t kParetoPlans = 24, kWalked = 256;
  const Clock::time_point start = Clock::now();
  const Deadline deadline(start, options.limit);
  const std::int64_t devices = options.devices > 0 ? options.devices : asked.world_size();
  Plan plan = asked;
  make_room_for_ranks(plan.hardware, devices);
  const auto top = static_cast<std::size_t>(std::max(1, options.top));
  const int threads = thread_count(options.threads);
  Enumeration found = enumerate(plan, devices, std::max(kWalked, 4 * top), options, deadline);
  const double enumeration_seconds = seconds_since(start);

  SearchResult result;
  result.enumerated = found.sum.enumerated;
  result.legal = found.sum.legal;
  result.fits = found.sum.fits;
  result.complete = found.complete;
  result.plans_per_second = static_cast<double>(result.enumerated) / enumeration_seconds;
  result.rejected = rejections(plan, found.sum);

  refine_times(plan, found.sum.best, threads, deadline);
  RefusedBySlack refused;
  const std::vector<Confirmed> best = confirm(plan, found.sum.best, top, threads, deadline, refused);
  for (std::size_t i = 0; i < std::min(top, best.size()); ++i) {
    result.plans.push_back(ranked_plan(plan, best[i].candidate, best[i].profile));
    result.plans.back().rank = static_cast<std::int64_t>(i) + 1;
  }
  std::vector<Confirmed> both;
  if (!deadline.has_passed())
    both = confirm(plan, thinned(found.sum.pareto.plans(), kParetoPlans), kParetoPlans, threads, deadline, refused);
  result.refused_by_slack = static_cast<std::int64_t>(refused.size());
  result.memory_limit = memory_limit(plan);
  both.insert(both.end(), best.begin(), best.end());
  result.pareto = pareto_plans(plan, std::move(both));
  if (!best.empty()) {
    result.bound_by = bound_by(best.front().profile);
    if (!deadline.has_passed()) result.knobs = knob_steps(plan, best.front().candidate);
  }
  result.complete = result.complete && !deadline.has_passed();
  result.seconds = Seconds(seconds_since(start));
  return result;
}

}  // namespace reckon
