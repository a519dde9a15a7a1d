#include "runtime/train/plan_sampler.h"

#include "plan/core_sharing.h"
#include "plan/step_documents.h"

namespace reckon {
namespace {

constexpr int kStepsARound = 2;

bool computes(const std::string& component) {
  return component == "optimizer" || component.starts_with("forward.") || component.starts_with("backward.");
}

/// What the ops of a rank cost a step beyond their own seconds: ranks that compute alike still wait for whoever is
/// late.
bool goes_with_computing(const std::string& component) {
  return component == "waiting" || component == "other";
}

}  // namespace

PlanSampler::PlanSampler(const Plan& plan, Communicator& group)
    : plan_(plan), group_(group), tokens_(plan_), trainer_(plan_, group, tokens_) {
  trainer_.step(step_++);  // first touch of all memory
}

void PlanSampler::sample() {
  for (int repetition = 0; repetition < kStepsARound; ++repetition) {
    group_.barrier().wait();
    const StepTimes times = trainer_.step(step_++).times;
    const std::vector<std::string>& names = trainer_.timer().names();
    double sum = 0;
    for (std::size_t i = 0; i < times.exposed.size(); ++i) {
      if (computes(names[i])) series_[names[i]].add(times.exposed[i]);
      if (computes(names[i]) || goes_with_computing(names[i])) sum += times.exposed[i];
    }
    together_.add(sum);
  }
}

void PlanSampler::drop_last() {
  for (auto& [name, series] : series_) series.drop(kStepsARound);
  together_.drop(kStepsARound);
}

/// Of the slowest rank in each: ranks of a ring have unequal shares of attention, of which the op list has the largest.
std::map<std::string, double> PlanSampler::medians() const {
  std::vector<double> values;
  for (const auto& [name, series] : series_) values.push_back(series.result());
  group_.all_reduce(view(values), Reduction::maximum).wait();
  std::map<std::string, double> medians;
  for (auto value = values.begin(); const auto& [name, series] : series_) medians[name] = *value++;
  return medians;
}

SampledPlan PlanSampler::result() const {
  const std::map<std::string, double> components = medians();
  const auto seconds_of = [&](const std::string& component) {
    const auto found = components.find(component);
    return found == components.end() ? 0.0 : found->second;
  };
  double together[] = {together_.result()}, sum = 0;
  group_.all_reduce(view(together), Reduction::maximum).wait();
  for (const auto& [name, seconds] : components) sum += seconds;
  const double share = together[0] / sum;
  const double a_batch = share / static_cast<double>(plan_.micro_batches());
  SampledPlan sampled{
      plan_,
      {},
      Seconds(share * seconds_of("optimizer")),
      {Seconds(a_batch * seconds_of("forward.quantize")), Seconds(a_batch * seconds_of("backward.dequantize"))}};
  const AttentionWork work = planned_attention_work(plan_);
  for (const Section section : {Section::embedding, Section::dense_layer, Section::head}) {
    const std::int64_t times_a_step = section == Section::dense_layer ? plan_.model.layers : 1;
    const double scale = a_batch / static_cast<double>(times_a_step);
    for (const Op& op : section_ops(plan_, section, work).ops) {
      const std::string name(op.name);
      sampled.ops.push_back({name, measured_shape(op, group_.size()), Seconds(scale * seconds_of("forward." + name)),
                             Seconds(scale * seconds_of("backward." + name)), plan_.precision.compute});
    }
  }
  return sampled;
}

}  // namespace reckon
