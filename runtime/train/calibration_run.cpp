#include "runtime/train/calibration_run.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "plan/core_sharing.h"
#include "plan/step_documents.h"
#include "runtime/comm/measure_collective.h"
#include "runtime/train/attention_sampler.h"
#include "runtime/train/fit_collective.h"
#include "runtime/train/ops/matrix_product.h"
#include "runtime/train/rank_scope.h"
#include "runtime/train/rank_trainer.h"
#include "runtime/train/statistics.h"

namespace reckon {
namespace {

constexpr std::int64_t kMostLayers = 4;  // more than fit into the caches of a small model, few enough to be quick
constexpr int kLeastRounds = 3;

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// One series of figures: the faster of two repetitions in each round.
struct Series {
  std::vector<double> rounds;
  double result() const { return median(rounds); }
};

/// A plan in training, sampled step by step.
class PlanSampler {
 public:
  PlanSampler(const Plan& plan, Communicator& world)
      : plan_(plan), ranks_(world.size()), tokens_(plan_), trainer_(plan_, world, tokens_) {
    trainer_.step(step_++);  // first touch of all memory
  }

  void round() {
    std::map<std::string, double> fastest;
    for (int repetition = 0; repetition < 2; ++repetition) {
      const StepTimes times = trainer_.step(step_++).times;
      const std::vector<std::string>& names = trainer_.timer().names();
      for (std::size_t i = 0; i < times.exposed.size(); ++i) {
        const auto [known, is_new] = fastest.emplace(names[i], times.exposed[i]);
        if (!is_new) known->second = std::min(known->second, times.exposed[i]);
      }
    }
    for (const auto& [name, seconds] : fastest) series_[name].rounds.push_back(seconds);
  }

  void add_to(CalibrationSamples& samples) const {
    add_section(Section::embedding, 1, samples);
    add_section(Section::dense_layer, plan_.model.layers, samples);
    add_section(Section::head, 1, samples);
    samples.optimizer.push_back(Seconds(series_.at("optimizer").result()));
  }

 private:
  double component(const std::string& name) const {
    const auto found = series_.find(name);
    return found == series_.end() ? 0.0 : found->second.result();
  }

  void add_section(Section section, std::int64_t times_a_step, CalibrationSamples& samples) const {
    const auto passes = static_cast<double>(times_a_step * plan_.micro_batches());
    for (const Op& op : section_ops(plan_, section, planned_attention_work(plan_)).ops) {
      const std::string name(op.name);
      samples.ops.push_back({name, measured_shape(op, ranks_), Seconds(component("forward." + name) / passes),
                             Seconds(component("backward." + name) / passes), plan_.precision.compute});
    }
  }

  Plan plan_;
  std::int64_t ranks_;  // that compute at the same time
  TokenStream tokens_;
  RankTrainer trainer_;
  std::int64_t step_ = 0;
  std::map<std::string, Series> series_;
};

/// The three products of one shape.
class ProductSampler {
 public:
  ProductSampler(GemmShape shape, NumberFormat format)
      : shape_(shape),
        format_(format),
        x_(at::ones({shape.m, shape.k}, scalar_type(format))),
        weight_(at::ones({shape.n, shape.k}, scalar_type(format))),
        y_(at::ones({shape.m, shape.n}, scalar_type(format))),
        gradient_(at::zeros({shape.n, shape.k}, at::kFloat)) {}

  void round() {
    const std::function<void()> passes[] = {[&] { linear_forward(x_, weight_, y_); },
                                            [&] { linear_input_gradient(y_, weight_, x_); },
                                            [&] { linear_weight_gradient(y_, x_, gradient_); }};
    for (int pass = 0; pass < 3; ++pass)
      series_[pass].rounds.push_back(std::min(seconds_of(passes[pass]), seconds_of(passes[pass])));
    x_.fill_(1.0);  // results fed back would grow without bound
    y_.fill_(1.0);
  }

  void add_to(CalibrationSamples& samples) const {
    for (int pass = 0; pass < 3; ++pass) {
      const Seconds seconds(series_[pass].result());
      samples.gemms.push_back({1, shape_.m, shape_.n, shape_.k, static_cast<Pass>(pass), format_, seconds});
      FlopsPerSecond& peak = format_ == NumberFormat::fp32 ? samples.fp32_peak : samples.bf16_peak;
      peak = std::max(peak, FlopsPerSecond(shape_.flops() / seconds.value));
    }
  }

 private:
  GemmShape shape_;
  NumberFormat format_;
  at::Tensor x_, weight_, y_, gradient_;
  Series series_[3];
};

/// Reads one array and writes another, both far larger than the caches.
class BandwidthSampler {
 public:
  void round() {
    const auto copy = [&] { target_.copy_(source_); };
    series_.rounds.push_back(std::min(seconds_of(copy), seconds_of(copy)));
  }
  BytesPerSecond result() const { return BytesPerSecond(2.0 * static_cast<double>(kBytes) / series_.result()); }

 private:
  static constexpr std::int64_t kBytes = 48 << 20;
  at::Tensor source_ = at::ones({kBytes}, at::kByte), target_ = at::zeros({kBytes}, at::kByte);
  Series series_;
};

/// Shapes from a few hundred to a few thousand in every dimension, as small models have them.
std::vector<GemmShape> product_grid() {
  return {{1, 256, 256, 256},  {1, 512, 1024, 256}, {1, 1024, 384, 1024}, {1, 1024, 2048, 384},
          {1, 512, 4096, 512}, {1, 2048, 512, 512}, {1, 1024, 1024, 1024}};
}

template <class Samplers>
void round_of(Samplers& samplers, Communicator& world) {
  for (auto& sampler : samplers) {
    world.barrier().wait();
    sampler->round();
  }
}

}  // namespace

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

CalibrationSamples calibrate(const std::vector<Plan>& plans, Communicator& world, Seconds budget,
                             const std::vector<Plan>& attention_of) {
  MemoryAccount account(Bytes(0), world.rank());
  const RankScope scope(account);
  std::vector<std::unique_ptr<PlanSampler>> plan_samplers;
  for (const Plan& plan : plans) plan_samplers.push_back(std::make_unique<PlanSampler>(plan, world));
  std::vector<std::unique_ptr<AttentionSampler>> attention;
  for (const Plan& plan : attention_of) attention.push_back(std::make_unique<AttentionSampler>(plan));
  std::vector<std::unique_ptr<ProductSampler>> products;
  for (const GemmShape& shape : product_grid())
    for (const NumberFormat format : {NumberFormat::fp32, NumberFormat::bf16})
      products.push_back(std::make_unique<ProductSampler>(shape, format));
  BandwidthSampler bandwidth;
  CollectiveSampler collectives(world);

  const auto start = std::chrono::steady_clock::now();
  double spent[] = {0.0};
  for (int round = 0; round < kLeastRounds || spent[0] < budget.value; ++round) {
    round_of(plan_samplers, world);
    round_of(attention, world);
    round_of(products, world);
    bandwidth.round();
    collectives.round();
    spent[0] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    world.all_reduce(view(spent), Reduction::maximum).wait();
  }
  CalibrationSamples samples;
  for (const auto& sampler : plan_samplers) sampler->add_to(samples);
  for (OpSample& sample : samples.ops) {
    if (sample.op != "attention") continue;  // ranks of a ring have unequal shares: the list speaks of the largest
    double seconds[] = {sample.forward.value, sample.backward.value};
    world.all_reduce(view(seconds), Reduction::maximum).wait();
    sample.forward = Seconds(seconds[0]);
    sample.backward = Seconds(seconds[1]);
  }
  for (const auto& sampler : attention) {
    const AttentionSample sample = sampler->result();
    const OpSample op{"attention", measured_shape(sample.op, world.size()), sample.forward, sample.backward,
                      sample.format};
    const auto known = std::find_if(samples.ops.begin(), samples.ops.end(), [&](const OpSample& other) {
      return other.op == op.op && other.shape == op.shape && other.format == op.format;
    });
    if (known != samples.ops.end()) *known = op;
    else samples.ops.push_back(op);
    samples.attention.push_back(sample);
  }
  for (const auto& sampler : products) sampler->add_to(samples);
  samples.bandwidth = bandwidth.result();
  samples.collectives = collectives.fits();
  return samples;
}

}  // namespace reckon
