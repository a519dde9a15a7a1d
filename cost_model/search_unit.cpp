#include "cost_model/search_unit.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "cost_model/collective_cost.h"

namespace reckon {

namespace {

class UnitSearch {
 public:
  UnitSearch(const Plan& base, const Degrees& inner, std::int64_t devices, std::int64_t order, std::size_t keep,
             const FixedKeys& fixed, const std::function<bool()>& out_of_time, CandidateModel& model)
      : base_(base),
        inner_(inner),
        devices_(devices),
        order_(order << 32),
        keep_(keep),
        fixed_(fixed),
        out_of_time_(out_of_time),
        model_(model) {}

  UnitResult run() {
    const std::int64_t rest = devices_ / (inner_.tensor * inner_.ulysses * inner_.ring);
    result_.best.reserve(std::min<std::size_t>(4 * keep_, 1 << 12));
    for (const std::int64_t pipeline : divisors(rest)) {
      Candidate candidate;
      candidate.degrees = inner_;
      candidate.degrees.pipeline = pipeline;
      candidate.degrees.data = rest / pipeline;
      if (const auto rule = broken_rule(base_, candidate.degrees)) {
        ++result_.enumerated;
        reject(*rule, candidate);
        continue;
      }
      for (const std::int64_t micro_batch : divisors(base_.batch.global_batch / candidate.degrees.data)) {
        if (out_of_time_()) {
          result_.complete = false;
          break;
        }
        candidate.micro_batch = micro_batch;
        shape_ = &shape(micro_batch);
        message_ = message(candidate);
        search_zero_stages(candidate);
      }
    }
    std::sort(result_.best.begin(), result_.best.end());
    if (result_.best.size() > keep_) result_.best.resize(keep_);
    return std::move(result_);
  }

 private:
  void search_zero_stages(Candidate candidate) {
    const Degrees& d = candidate.degrees;
    const int stages = d.data * d.ulysses * d.ring > 1 ? 3 : 0;
    for (candidate.zero = 0; candidate.zero <= stages; ++candidate.zero) {
      sharing_ = &sharing(candidate);
      search_schedules(candidate);
    }
  }

  void search_schedules(Candidate candidate) {
    search_storage(candidate);
    const std::int64_t pipeline = candidate.degrees.pipeline;
    if (pipeline == 1) return;
    candidate.schedule = ScheduleKind::gpipe;
    search_storage(candidate);
    candidate.schedule = ScheduleKind::interleaved;
    const std::int64_t micro_batches = base_.batch.global_batch / (candidate.micro_batch * candidate.degrees.data);
    if (micro_batches % pipeline != 0) return;
    for (const std::int64_t chunks : chunk_choices(base_.model.layers, pipeline)) {
      candidate.chunks = chunks;
      search_storage(candidate);
    }
  }

  /// Recomputation is tried only where a plan does not fit without: it never makes one faster.
  void search_storage(Candidate candidate) {
    for (candidate.storage = 0; candidate.storage < storage_choices().size(); ++candidate.storage) {
      candidate.recompute = Recompute::none;
      if (evaluate(candidate)) continue;
      for (const Recompute mode : {Recompute::elementwise, Recompute::selective, Recompute::full}) {
        if (mode == Recompute::selective && base_.kernels.attention == AttentionKernel::flash) continue;
        candidate.recompute = mode;
        evaluate(candidate);
      }
    }
  }

  bool evaluate(const Candidate& candidate) {
    if (!fixed_.allow(candidate)) return false;
    ++result_.enumerated;
    ++result_.legal;
    const CandidateCost cost = model_.evaluate(candidate, *sharing_, message_, *shape_);
    if (!cost.memory.fits) {
      refuse(cost.memory.breaks, candidate);
      return false;
    }
    ++result_.fits;
    FoundPlan found{cost.seconds, cost.memory.need, order_ + result_.enumerated, candidate, {}};
    if (candidate.recompute != Recompute::none) found.recompute_layers = model_.recomputed_layers();
    result_.pareto.add(found);
    keep(found);
    return true;
  }

  void keep(const FoundPlan& found) {
    if (result_.best.size() >= 2 * keep_ && !(found < worst_kept_)) return;
    result_.best.push_back(found);
    if (result_.best.size() < 4 * keep_) return;
    std::sort(result_.best.begin(), result_.best.end());
    result_.best.resize(2 * keep_);
    worst_kept_ = result_.best.back();
  }

  /// `component` is a literal that crosses the limit.
  void refuse(std::string_view reason, const Candidate& candidate) {
    if (reason.data() != last_reason_ || !last_rejection_) {  // mostly the same reason again
      last_reason_ = reason.data();
      const auto [entry, is_new] = result_.rejected.try_emplace("does not fit: " + std::string(reason));
      last_rejection_ = &entry->second;
      if (is_new) last_rejection_->example = candidate;
    }
    ++last_rejection_->count;
  }
  void reject(const std::string& reason, const Candidate& candidate) {
    const auto [entry, is_new] = result_.rejected.try_emplace(reason);
    if (is_new) entry->second.example = candidate;
    ++entry->second.count;
  }

  ShapeCosts& shape(std::int64_t micro_batch) {
    auto& known = shapes_[micro_batch];
    if (!known) {
      Candidate one;
      one.degrees = inner_;
      one.degrees.data = devices_ / (inner_.tensor * inner_.ulysses * inner_.ring);
      one.micro_batch = micro_batch;
      known = std::make_unique<ShapeCosts>(plan_of(base_, one), model_.storage());
    }
    return *known;
  }

  Sharing& sharing(const Candidate& candidate) {
    auto& known = sharings_[{candidate.degrees.pipeline, candidate.zero}];
    if (!known) {
      Candidate one;
      one.degrees = candidate.degrees;
      one.zero = candidate.zero;
      if (!elements_) elements_ = section_elements(base_.model, inner_.tensor, inner_.expert);
      known = std::make_unique<Sharing>(plan_of(base_, one), *elements_);
    }
    return *known;
  }

  /// Seconds of one activation between neighbours of the pipeline.
  double message(const Candidate& candidate) {
    if (candidate.degrees.pipeline == 1) return 0;
    const bool same_node = devices_ / candidate.degrees.pipeline < base_.hardware.devices_per_node;
    return message_cost(base_.hardware, same_node, shape_->message_bytes()).seconds.value;
  }

  const Plan& base_;
  const Degrees inner_;
  const std::int64_t devices_, order_;
  const std::size_t keep_;
  const FixedKeys& fixed_;
  const std::function<bool()>& out_of_time_;
  CandidateModel& model_;
  UnitResult result_;
  FoundPlan worst_kept_{std::numeric_limits<double>::infinity(), {}, 0, {}, {}};  // nothing is cut off yet
  const char* last_reason_ = nullptr;
  UnitRejection* last_rejection_ = nullptr;
  std::optional<SectionElements> elements_;  // of the unit's degrees
  std::map<std::int64_t, std::unique_ptr<ShapeCosts>> shapes_;
  std::map<std::pair<std::int64_t, int>, std::unique_ptr<Sharing>> sharings_;
  ShapeCosts* shape_ = nullptr;  // of the candidates at hand, like the next two
  Sharing* sharing_ = nullptr;
  double message_ = 0;
};

}  // namespace

void ParetoSet::add(const FoundPlan& plan) {
  const auto after = std::lower_bound(plans_.begin(), plans_.end(), plan);
  if (after != plans_.begin() && std::prev(after)->need <= plan.need) return;
  auto last = after;
  while (last != plans_.end() && last->need >= plan.need) ++last;
  if (after == last) {
    plans_.insert(after, plan);
  } else {
    *after = plan;
    plans_.erase(std::next(after), last);
  }
}

UnitResult search_unit(const Plan& base, const Degrees& inner, std::int64_t devices, std::int64_t order,
                       std::size_t keep, const FixedKeys& fixed, const std::function<bool()>& out_of_time,
                       CandidateModel& model) {
  return UnitSearch(base, inner, devices, order, keep, fixed, out_of_time, model).run();
}

}  // namespace reckon
