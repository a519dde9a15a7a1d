#include "cost_model/assumptions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "cost_model/gemm_cost.h"
#include "plan/choices.h"
#include "plan/describe_model.h"
#include "plan/load_plan.h"

namespace reckon {

namespace {

/// "dense_layer ops: 9 interpolated, 3 assumed": how well the layer's times are founded.
std::string op_provenance(const SectionTimes& section) {
  std::map<Provenance, int> counts;
  for (const OpTime& time : section.ops) ++counts[time.provenance];
  std::string text;
  for (const auto& [provenance, count] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name_of(provenance));
  return text;
}

std::string collective_provenance(const HardwareSpec& hardware) {
  if (hardware.time.collectives.empty())
    return "collectives: NCCL's tuning constants as a prior, flat ring over the node's network ports; nothing measured";
  return fmt::format("collectives: {} fits of the hardware file, other layouts from bus bandwidth or the prior",
                     hardware.time.collectives.size());
}

/// A bf16 peak of more than 1.5 times the device's dense rate is a sparse rate: twice the dense one.
void warn_peak(const HardwareSpec& hardware, std::vector<std::string>& texts) {
  static const std::map<std::string, double> dense = {{"A100", 312e12}, {"H100", 989.5e12}, {"H200", 989.5e12},
                                                      {"A800", 312e12}, {"H800", 989.5e12}, {"B200", 2250e12}};
  const auto peak = hardware.device.peak.find(NumberFormat::bf16);
  if (peak == hardware.device.peak.end()) return;
  for (const auto& [name, rate] : dense)
    if (hardware.device.name.find(name) != std::string::npos && peak->second.value > 1.5 * rate)
      texts.push_back(
          fmt::format("the bf16 peak of {} is {:.0f} TFLOP/s, the dense rate is {:.0f}: a sparse or marketing "
                      "figure halves every utilisation",
                      hardware.device.name, peak->second.value * 1e-12, rate * 1e-12));
}

void warn_memory(const StepProfile& profile, std::vector<std::string>& texts) {
  const Verdict& verdict = profile.verdict;
  if (verdict.limit.value <= 0 || !verdict.fits) return;
  const double free = 1.0 - verdict.need / verdict.limit;
  if (free < 0.05)
    texts.push_back(
        fmt::format("memory is nearly full: {:.2f} GiB of {:.2f} GiB are needed, {:.0f} % probability of fitting",
                    static_cast<double>(verdict.need.value) / kGiB, static_cast<double>(verdict.limit.value) / kGiB,
                    100.0 * verdict.probability));
}

}  // namespace

std::vector<std::string> assumptions(const Plan& plan, const OpTimes& times, const DocumentWork& documents) {
  std::vector<std::string> texts;
  if (plan.hardware.time.global_factor != 1.0)
    texts.push_back(fmt::format("device times carry the factor {:.3f} of an earlier measured run",
                                plan.hardware.time.global_factor));
  const SectionTimes& layer = times.dense_layer.ops.empty() ? times.moe_layer : times.dense_layer;
  texts.push_back("times of a layer's ops: " + op_provenance(layer));
  texts.push_back(collective_provenance(plan.hardware));
  texts.push_back(
      "model FLOPs are causal: visible query-key pairs only, backward twice the forward, input table not "
      "counted; utilisation is of the dense " +
      std::string(name_of(plan.precision.compute)) + " peak");
  if (plan.model.is_moe()) texts.push_back("tokens are spread evenly over the experts");
  if (plan.documents.source == "single") {
    texts.push_back("every row is one document");
  } else {
    const PricedSteps steps = priced_steps(plan);
    texts.push_back(
        fmt::format("attention is that of documents '{}' packed into the rows of steps {} to {}, {} of {} that a run "
                    "times; all replicas wait for the heaviest, {:.3f} of the mean",
                    plan.documents.source, steps.first + 1, steps.first + steps.count,
                    steps.is_sample ? "a sample" : "all", plan.train.steps - steps.first, documents.replica_imbalance));
  }
  return texts;
}

std::vector<std::string> warnings(const StepProfile& profile) {
  std::vector<std::string> texts;
  if (std::string unread = unread_fields_warning(profile.plan.model); !unread.empty())
    texts.push_back(std::move(unread));
  for (std::string& text : plan_warnings(profile.plan)) texts.push_back(std::move(text));
  warn_peak(profile.plan.hardware, texts);
  warn_memory(profile, texts);
  if (profile.step.mfu > 1.0 || profile.step.hfu > 1.0)
    texts.push_back(fmt::format("the predicted speed is implausible: {:.0f} % of the peak", 100.0 * profile.step.hfu));
  return texts;
}

}  // namespace reckon
