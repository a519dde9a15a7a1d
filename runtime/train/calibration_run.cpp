#include "runtime/train/calibration_run.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include "runtime/train/attention_sampler.h"
#include "runtime/train/collective_sampler.h"
#include "runtime/train/kernel_samplers.h"
#include "runtime/train/machine_watch.h"
#include "runtime/train/plan_sampler.h"
#include "runtime/train/rank_scope.h"

namespace reckon {
namespace {

constexpr std::int64_t kMostLayers = 3;  // more than fit into the caches of a small model, few enough to be quick
constexpr int kRepeats = 2;              // of one noisy visit

struct Effort {
  int least_rounds, most_rounds;
  double settled;  // standard error of a median
  double seconds, seconds_a_plan;
  int most_repeats;  // in all

  bool spent(double elapsed, std::size_t plans) const {
    return elapsed > seconds + seconds_a_plan * static_cast<double>(plans);
  }
};
constexpr Effort kQuick{3, 6, 0.02, 8, 2, 8}, kFull{5, 30, 0.01, 30, 5, 40};

/// The groups of the first n ranks, made when they are first asked for, in the same order on all ranks.
class FirstRanks {
 public:
  explicit FirstRanks(Communicator& world) : world_(world) {}

  /// Null on a rank outside.
  Communicator* operator[](std::int64_t ranks) {
    const auto [entry, is_new] = groups_.try_emplace(ranks);
    if (is_new) entry->second = world_.split(world_.rank() < ranks ? 0 : -1, world_.rank(), "measuring ranks");
    return entry->second.get();
  }

 private:
  Communicator& world_;
  std::map<std::int64_t, std::unique_ptr<Communicator>> groups_;
};

/// One entry of a round. On ranks that have no part in it the sampler is null.
struct Visit {
  Sampler* sampler = nullptr;
  int rounds = 0;
  bool settled = false;
};

class Rounds {
 public:
  Rounds(const CalibrationJobs& jobs, Communicator& world)
      : effort_(jobs.quick ? kQuick : kFull),
        plans_(jobs.plans.size()),
        world_(world),
        watch_(world, static_cast<int>(jobs.computing)) {}

  void add(Sampler* sampler) { visits_.push_back({sampler, 0, false}); }

  void run() {
    const auto start = std::chrono::steady_clock::now();
    for (int round = 0; round < effort_.most_rounds; ++round) {
      bool open = false;
      for (Visit& visit : visits_) {
        if (visit.settled) continue;
        take(visit);
        open = open || !visit.settled;
      }
      const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      const bool late = round + 1 >= effort_.least_rounds && effort_.spent(agreed(elapsed), plans_);
      if (!open || late) return;
    }
  }

  const Quietness& quietness() const { return watch_.quietness(); }

 private:
  double agreed(double value) {
    double shared[] = {value};
    world_.all_reduce(view(shared), Reduction::maximum).wait();
    return shared[0];
  }

  void take(Visit& visit) {
    for (int repeat = 0;; ++repeat) {
      watch_.begin();
      if (visit.sampler) visit.sampler->sample();
      const bool noisy = watch_.end();
      if (!noisy || repeat == kRepeats || watch_.quietness().repeated >= effort_.most_repeats) {
        watch_.keep(noisy);
        break;
      }
      watch_.repeat();
      if (visit.sampler) visit.sampler->drop_last();
    }
    ++visit.rounds;
    const double error = agreed(visit.sampler ? std::min(1.0, visit.sampler->relative_error()) : 0.0);
    visit.settled = visit.rounds >= effort_.least_rounds && error < effort_.settled;
  }

  Effort effort_;
  std::size_t plans_;
  Communicator& world_;
  MachineWatch watch_;
  std::vector<Visit> visits_;
};

}  // namespace

std::int64_t CalibrationJobs::world_size() const {
  std::int64_t ranks = computing;
  for (const SampledJob& job : plans) ranks = std::max(ranks, job.ranks);
  for (const SampledJob& job : attention) ranks = std::max(ranks, job.ranks);
  for (const CollectiveJob& job : collectives) ranks = std::max(ranks, job.together);
  return ranks;
}

Plan sampled_plan(Plan plan, std::int64_t ranks) {
  ParallelSpec& parallel = plan.parallel;
  if (ranks % (parallel.tensor * plan.context()) != 0) {  // too few ranks for the context group: rows of a rank's share
    plan.batch.sequence_length /= plan.context();
    parallel.ulysses = parallel.ring = 1;
  }
  if (ranks % parallel.tensor != 0) parallel.tensor = 1;
  parallel.data = ranks / (parallel.tensor * plan.context());
  parallel.pipeline = parallel.chunks = 1;
  parallel.schedule = ScheduleKind::one_forward_one_backward;
  parallel.layers_per_stage.clear();
  parallel.zero = 0;
  parallel.zero_group = 0;
  plan.gradients.exchange = GradientExchange::flat;
  plan.activations.recompute = Recompute::none;
  plan.activations.recompute_layers.clear();
  plan.model.layers = std::min(plan.model.layers, kMostLayers);
  plan.batch.global_batch = plan.batch.micro_batch * parallel.data;
  plan.memory.limit.reset();
  plan.train.data.clear();
  return plan;
}

bool samples_attention_apart(const Plan& plan, std::int64_t ranks) {
  return plan.has_documents() || ranks % (plan.parallel.tensor * plan.context()) != 0;
}

CalibrationSamples calibrate(const CalibrationJobs& jobs, Communicator& world) {
  MemoryAccount account(Bytes(0), world.rank());
  const RankScope scope(account);
  FirstRanks first(world);
  Rounds rounds(jobs, world);
  Communicator* const computing = first[jobs.computing];

  std::vector<std::unique_ptr<PlanSampler>> plans;
  for (const SampledJob& job : jobs.plans) {
    Communicator* const group = first[job.ranks];
    plans.push_back(group ? std::make_unique<PlanSampler>(job.plan, *group) : nullptr);
    rounds.add(plans.back().get());
  }
  std::vector<std::unique_ptr<AttentionSampler>> attention;
  for (const SampledJob& job : jobs.attention) {
    const bool takes_part = world.rank() < job.ranks;
    attention.push_back(takes_part ? std::make_unique<AttentionSampler>(job.plan, job.ranks) : nullptr);
    rounds.add(attention.back().get());
  }
  std::vector<std::unique_ptr<CollectiveSampler>> collectives;
  for (const CollectiveJob& job : jobs.collectives) {
    Communicator* const together = first[job.together];
    collectives.push_back(together ? std::make_unique<CollectiveSampler>(*together, static_cast<int>(job.ranks))
                                   : nullptr);
    rounds.add(collectives.back().get());
  }
  const auto on_computing = [&]<class Kernel, class... Arguments>(std::unique_ptr<Kernel>& kernel,
                                                                  Arguments&... arguments) {
    if (computing) kernel = std::make_unique<Kernel>(arguments...);
    rounds.add(kernel.get());
  };
  std::unique_ptr<ProductSampler> products;
  std::unique_ptr<BandwidthSampler> bandwidth;
  on_computing(products, jobs.products);
  on_computing(bandwidth);

  rounds.run();
  CalibrationSamples samples;
  for (const auto& sampler : plans)
    if (sampler) samples.plans.push_back(sampler->result());
  for (const auto& sampler : attention)
    if (sampler) samples.attention.push_back(sampler->result());
  for (const auto& sampler : collectives)
    if (sampler)
      for (CollectiveSamples& one : sampler->samples(static_cast<double>(jobs.cores)))
        samples.collectives.push_back(std::move(one));
  if (computing) {
    samples.gemms = products->samples();
    samples.fp32_peak = products->peak(NumberFormat::fp32);
    samples.bf16_peak = products->peak(NumberFormat::bf16);
    samples.bandwidth = bandwidth->result();
  }
  samples.quietness = rounds.quietness();
  return samples;
}

}  // namespace reckon
