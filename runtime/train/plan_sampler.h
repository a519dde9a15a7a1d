// A plan in training, sampled step by step: what each of its ops takes in place.
#pragma once

#include <map>
#include <string>

#include "plan/calibration_samples.h"
#include "runtime/train/rank_trainer.h"
#include "runtime/train/sample_series.h"
#include "runtime/train/sampler.h"

namespace reckon {

class PlanSampler : public Sampler {
 public:
  /// `plan` as it is to be run on the ranks of `group`.
  PlanSampler(const Plan& plan, Communicator& group);

  void sample() override;
  void drop_last() override;
  double relative_error() const override { return together_.relative_error(); }

  /// Medians over all steps, each op with the share that makes all of them together take the median of what a step
  /// spends computing and waiting for ranks that are late: what is predicted is a typical step, single ops are
  /// disturbed in turns, and ranks wait for each other's disturbances.
  SampledPlan result() const;

 private:
  std::map<std::string, double> medians() const;

  Plan plan_;
  Communicator& group_;
  TokenStream tokens_;
  RankTrainer trainer_;
  std::int64_t step_ = 0;
  std::map<std::string, SampleSeries> series_;  // computing components
  SampleSeries together_;                       // their sum, with waiting
};

}  // namespace reckon
