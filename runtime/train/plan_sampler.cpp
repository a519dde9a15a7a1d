#include "runtime/train/plan_sampler.h"

#include "plan/core_sharing.h"
#include "plan/step_documents.h"

namespace reckon {
namespace {

constexpr int kStepsARound = 2;

bool computes(const std::string& component) {
  return component == "optimizer" || component.starts_with("forward.") || component.starts_with("backward.");
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
      if (!computes(names[i])) continue;
      series_[names[i]].add(times.exposed[i]);
      sum += times.exposed[i];
    }
    together_.add(sum);
  }
}

void PlanSampler::drop_last() {
  for (auto& [name, series] : series_) series.drop(kStepsARound);
  together_.drop(kStepsARound);
}

double PlanSampler::seconds_of(const std::string& component) const {
  const auto found = series_.find(component);
  return found == series_.end() ? 0.0 : found->second.result();
}

SampledPlan PlanSampler::result() const {
  double medians = 0;
  for (const auto& [name, series] : series_) medians += series.result();
  const double share = together_.result() / medians;
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
      double seconds[] = {scale * seconds_of("forward." + name), scale * seconds_of("backward." + name)};
      // Ranks of a ring have unequal shares of attention, of which the op list has the largest.
      if (op.kind == OpKind::attention) group_.all_reduce(view(seconds), Reduction::maximum).wait();
      sampled.ops.push_back(
          {name, measured_shape(op, group_.size()), Seconds(seconds[0]), Seconds(seconds[1]), plan_.precision.compute});
    }
  }
  return sampled;
}

}  // namespace reckon
