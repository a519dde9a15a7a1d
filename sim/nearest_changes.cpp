#include "sim/nearest_changes.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace reckon {
namespace {

struct Candidate {
  std::vector<std::string> overrides;
  Plan plan;
};

class Candidates {
 public:
  explicit Candidates(const Plan& plan) : plan_(plan) {
    recompute();
    store_narrow();
    smaller_micro_batch();
    shard_states();
    trade_replicas();
  }
  std::vector<Candidate> take() { return std::move(candidates_); }

 private:
  template <class Change>
  void add(std::vector<std::string> overrides, Change&& change) {
    Candidate candidate{std::move(overrides), plan_};
    change(candidate.plan);
    candidates_.push_back(std::move(candidate));
  }

  /// The number of layers is left to the resolver: the fewest that fit.
  void recompute() {
    constexpr std::pair<Recompute, const char*> kModes[] = {{Recompute::elementwise, "elementwise"},
                                                            {Recompute::full, "full"}};
    for (const auto& [mode, name] : kModes)
      add({fmt::format("activations.recompute={}", name), "activations.recompute_layers=auto"},
          [mode = mode](Plan& plan) {
            plan.activations.recompute = mode;
            plan.activations.recompute_layers.clear();
          });
  }

  void store_narrow() {
    if (payload_bits(plan_.activations.stored) < 16) return;
    constexpr std::pair<NumberFormat, const char*> kFormats[] = {{NumberFormat::int8, "int8"},
                                                                 {NumberFormat::int4, "int4"}};
    for (const auto& [format, name] : kFormats)
      add({fmt::format("activations.stored={}", name), "activations.bits_by_stage=auto"},
          [format = format](Plan& plan) {
            plan.activations.stored = format;
            plan.activations.bits_by_stage.clear();
          });
  }

  void smaller_micro_batch() {
    for (std::int64_t rows = plan_.batch.micro_batch / 2; rows >= 1; rows /= 2)
      if (plan_.batch.micro_batch % rows == 0)
        add({fmt::format("batch.micro_batch={}", rows)}, [rows](Plan& plan) { plan.batch.micro_batch = rows; });
  }

  void shard_states() {
    if (plan_.parallel.data * plan_.context() == 1) return;
    for (int zero = plan_.parallel.zero + 1; zero <= 3; ++zero)
      add({fmt::format("parallel.zero={}", zero)}, [zero](Plan& plan) { plan.parallel.zero = zero; });
  }

  /// Half or a quarter of the replicas, each over two or four times as many devices.
  void trade_replicas() {
    for (const std::int64_t factor : {2, 4}) {
      if (plan_.parallel.data % factor != 0) continue;
      const std::int64_t data = plan_.parallel.data / factor;
      const std::int64_t tensor = plan_.parallel.tensor * factor, pipeline = plan_.parallel.pipeline * factor;
      add({fmt::format("parallel.data={}", data), fmt::format("parallel.tensor={}", tensor)}, [=](Plan& plan) {
        plan.parallel.data = data;
        plan.parallel.tensor = tensor;
      });
      add({fmt::format("parallel.data={}", data), fmt::format("parallel.pipeline={}", pipeline),
           "parallel.layers_per_stage=auto", "activations.recompute_layers=auto", "activations.bits_by_stage=auto"},
          [=](Plan& plan) {
            plan.parallel.data = data;
            plan.parallel.pipeline = pipeline;
            plan.parallel.layers_per_stage.clear();
            plan.activations.recompute_layers.clear();
            plan.activations.bits_by_stage.clear();
          });
    }
  }

  const Plan& plan_;
  std::vector<Candidate> candidates_;
};

}  // namespace

std::vector<FittingChange> nearest_changes(
    const Plan& plan, const std::function<std::optional<ChangedPlanResult>(const Plan&)>& evaluate) {
  std::vector<FittingChange> changes;
  for (Candidate& candidate : Candidates(plan).take()) {
    const auto result = evaluate(candidate.plan);
    if (result && result->fits) changes.push_back({std::move(candidate.overrides), result->need, result->step});
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const FittingChange& a, const FittingChange& b) { return a.step < b.step; });
  return changes;
}

}  // namespace reckon
