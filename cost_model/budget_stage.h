// One pipeline stage under one activation policy: what it needs, how long it works, how far its gradients are off. What
// the budget solver tries many times.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cost_model/schedule_points.h"
#include "cost_model/stage_memory.h"
#include "plan/layer_ops.h"
#include "plan/op_times.h"
#include "plan/plan.h"

namespace reckon {

/// A policy by class, and how many of the stage's layers are recomputed as a whole.
struct StagePolicy {
  std::map<ActivationClass, ClassPolicy> classes;
  std::int64_t recomputed_layers = 0;

  bool operator==(const StagePolicy&) const = default;
};

/// Memory, time and squared gradient error of every kind of section under one policy by class. They do not depend on
/// the stage, so that all stages share them.
struct SectionPrices {
  struct Row {
    Seconds busy;  // forward and backward of one micro-batch
    double squared_error = 0;
  };
  SectionTable table;
  std::array<Row, kSectionVariants> rows;  // by variant
};

/// Prices of the policies that were asked for so far.
class PolicyPrices {
 public:
  /// `plan` keeps everything as computed; `times` are its op times. All outlive this.
  PolicyPrices(const Plan& plan, const AttentionWork& work, const OpTimes& times)
      : plan_(plan), work_(work), times_(times) {}

  const SectionPrices& of(const std::map<ActivationClass, ClassPolicy>& classes);

 private:
  const Plan& plan_;
  const AttentionWork& work_;
  const OpTimes& times_;
  std::map<std::vector<int>, SectionPrices> known_;
};

struct StagePrice {
  Bytes memory;              // allocated at the peak, with communicators
  Seconds busy;              // one micro-batch, all its sections
  double squared_error = 0;  // summed over its sections
};

class BudgetStage {
 public:
  BudgetStage(const Plan& plan, std::int64_t stage, PolicyPrices& prices);

  StagePrice price(const StagePolicy& policy) const;
  /// The policy with the fewest recomputed layers that need at most `limit`; all layers where none suffices.
  StagePolicy fitted(StagePolicy policy, Bytes limit) const;
  std::int64_t layers() const { return layers_; }

 private:
  std::vector<ChunkSections> sections(std::int64_t recomputed_layers) const;
  Bytes memory(const SectionPrices& prices, const std::vector<ChunkSections>& chunks) const;

  const Plan& plan_;
  std::int64_t stage_, layers_;
  PolicyPrices& prices_;
  std::vector<SchedulePoint> points_;
};

/// The plan with these policies, one a stage.
Plan with_policies(const Plan& plan, const std::vector<StagePolicy>& policies);

/// Classes that are decided together, because one op restores them, with what can be done to them.
struct BudgetKnob {
  std::vector<ActivationClass> classes;
  std::vector<ClassPolicy> options;  // the first keeps them as computed
};
std::vector<BudgetKnob> budget_knobs(const Plan& plan);

/// "int5: gate up; recompute: qkv_input; 2 layers recomputed": what is not kept as computed.
std::string describe(const StagePolicy& policy, NumberFormat computed);

}  // namespace reckon
