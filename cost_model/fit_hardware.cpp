#include "cost_model/fit_hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "cost_model/gemm_cost.h"
#include "cost_model/op_cost.h"
#include "cost_model/relative_fit.h"
#include "cost_model/state_cost.h"
#include "cost_model/storage_rates.h"
#include "plan/choices.h"
#include "plan/core_sharing.h"
#include "plan/stage_sections.h"
#include "plan/step_documents.h"

namespace reckon {

namespace {

constexpr double kUnresolved = 1e-6;  // seconds; an op below it is a few function calls, which no plan's time shows

// Seconds that one term alone gives: the cost model's own formula with a factor of 1 there and 0 elsewhere.
constexpr OpFit kFlopsAlone{1.0, 0.0, Seconds(0.0), 0.0, Provenance::calibrated};
constexpr OpFit kBytesAlone{0.0, 1.0, Seconds(0.0), 0.0, Provenance::calibrated};

class Fitter {
 public:
  Fitter(const CalibrationSamples& samples, const HardwareSpec& hardware, std::vector<FitQuality>& qualities)
      : samples_(samples), hardware_(hardware), qualities_(qualities) {
    hardware_.time = {};
  }

  OpFit gemm(Pass pass) {
    std::vector<FitSample> rows;
    for (const GemmSample& s : samples_.gemms) {
      if (s.pass != pass) continue;
      const auto alone = [&](const OpFit& fit) {
        HardwareSpec unit = hardware_;
        unit.time.gemm[pass] = fit;
        return gemm_cost(unit, {s.batch, s.m, s.n, s.k}, pass, s.format).seconds.value;
      };
      rows.push_back({{alone(kFlopsAlone), alone(kBytesAlone), 1.0}, s.seconds.value});
    }
    return fitted(fmt::format("product, {}", name_of(pass)), std::move(rows), OpFit{});
  }

  OpFit attention(bool backward) {
    std::vector<FitSample> rows;
    const auto add = [&](const Op& op, NumberFormat format, Seconds seconds) {
      const auto traffic = static_cast<double>((backward ? op.backward_traffic : op.forward_traffic).value);
      const auto alone = [&](const OpFit& fit) {
        HardwareSpec unit = hardware_;
        unit.time.attention_forward = unit.time.attention_backward = fit;
        return attention_cost(unit, op.attention, traffic, format, backward).seconds.value;
      };
      if (op.attention.pairs > 0.0) rows.push_back({{alone(kFlopsAlone), alone(kBytesAlone), 1.0}, seconds.value});
    };
    for_ops([&](const SampledPlan& sampled, const Op& op, const OpSample& sample) {
      if (op.kind != OpKind::attention || sampled.plan.has_documents()) return;  // documents: measured apart
      add(op, sampled.plan.precision.compute, backward ? sample.backward : sample.forward);
    });
    for (const AttentionSample& sample : samples_.attention)
      add(sample.op, sample.format, backward ? sample.backward : sample.forward);
    return fitted(backward ? "attention, backward" : "attention, forward", std::move(rows),
                  backward ? TimeConstants{}.attention_backward : TimeConstants{}.attention_forward);
  }

  OpFit memory_bound() {
    std::vector<FitSample> rows;
    for_ops([&](const SampledPlan&, const Op& op, const OpSample& sample) {
      if (op.kind != OpKind::memory_bound) return;
      for (const bool backward : {false, true}) {
        const auto traffic = static_cast<double>((backward ? op.backward_traffic : op.forward_traffic).value);
        const double seconds = (backward ? sample.backward : sample.forward).value;
        if (traffic > 0.0 && seconds > kUnresolved)
          rows.push_back({{0.0, traffic / hardware_.device.memory_bandwidth.value, 1.0}, seconds});
      }
    });
    return fitted("op bound by memory", std::move(rows), TimeConstants{}.memory_bound);
  }

  /// Over updates that are priced by bytes.
  OpFit optimizer() {
    std::vector<FitSample> rows;
    for (const SampledPlan& sampled : samples_.plans)
      if (narrow_update(sampled.plan).empty())
        rows.push_back({{0.0, update_bytes_alone(sampled.plan).value, 1.0}, sampled.optimizer.value});
    return fitted("optimizer", std::move(rows), TimeConstants{}.optimizer);
  }

  /// The others, by kind; of plans with the same kind the first.
  std::vector<OpSample> narrow_updates() const {
    std::map<std::string, OpSample> kinds;
    for (const SampledPlan& sampled : samples_.plans) {
      if (narrow_update(sampled.plan).empty()) continue;
      Plan plan = sampled.plan;
      plan.hardware = hardware_;
      const double bytes = update_bytes_alone(plan).value * hardware_.device.memory_bandwidth.value;
      const OpSample sample = update_sample(plan, sampled.optimizer, bytes);
      kinds.emplace(fmt::format("{} {}", sample.shape, name_of(sample.format)), sample);
    }
    std::vector<OpSample> samples;
    for (const auto& [kind, sample] : kinds) samples.push_back(sample);
    return samples;
  }

 private:
  Seconds update_bytes_alone(Plan plan) const {
    plan.hardware = hardware_;
    plan.hardware.time.optimizer = kBytesAlone;
    return optimizer_time(plan, stage_weights(section_weights(plan), stage_sections(plan, 0)));
  }

  /// Terms in the order FLOPs, bytes, constant. Without samples the assumed fit stays.
  OpFit fitted(const std::string& kind, std::vector<FitSample> rows, const OpFit& assumed) {
    if (rows.empty()) return assumed;
    const auto samples = static_cast<int>(rows.size());
    const RelativeFit fit = fit_relative(std::move(rows));
    qualities_.push_back({kind, samples, fit.held_out, fit.relative_error});
    return {fit.coefficients[0], fit.coefficients[1], Seconds(fit.coefficients[2]), fit.relative_error,
            Provenance::calibrated};
  }

  template <class Use>
  void for_ops(Use use) const {
    for (const SampledPlan& sampled : samples_.plans) {
      const AttentionWork work = planned_attention_work(sampled.plan);
      std::size_t next = 0;
      for (const Section section : {Section::embedding, Section::dense_layer, Section::head})
        for (const Op& op : section_ops(sampled.plan, section, work).ops) use(sampled, op, sampled.ops.at(next++));
    }
  }

  const CalibrationSamples& samples_;
  HardwareSpec hardware_;  // without constants of time
  std::vector<FitQuality>& qualities_;
};

/// In place of what the steps of the sampled plan made of it, where they have the shape at all.
void replace_or_add(const AttentionSample& attention, std::vector<OpSample>& samples) {
  const OpSample own{std::string(attention.op.name), measured_shape(attention.op, attention.ranks), attention.forward,
                     attention.backward, attention.format};
  const auto known = std::find_if(samples.begin(), samples.end(), [&](const OpSample& other) {
    return other.op == own.op && other.shape == own.shape && other.format == own.format;
  });
  if (known == samples.end()) samples.push_back(own);
  else *known = own;
}

}  // namespace

CollectiveFit fit_collective(const CollectiveSamples& samples, std::vector<FitQuality>& qualities) {
  std::vector<FitSample> rows;
  for (const SizedTime& s : samples.times) {
    const auto bytes = static_cast<double>(s.bytes.value);
    rows.push_back({{bytes, 1.0, std::sqrt(bytes)}, s.seconds.value});
  }
  const RelativeFit solved = fit_relative(std::move(rows));
  CollectiveFit fit;
  fit.collective = samples.collective;
  fit.ranks_per_node = samples.ranks;
  fit.siblings = samples.siblings;
  // Without a share of the bytes (all sizes took equally long) the largest size bounds the bandwidth.
  const SizedTime& largest = samples.times.back();
  fit.bandwidth = solved.coefficients[0] > 0.0
                      ? BytesPerSecond(1.0 / solved.coefficients[0])
                      : BytesPerSecond(100.0 * static_cast<double>(largest.bytes.value) / largest.seconds.value);
  fit.alpha = Seconds(solved.coefficients[1]);
  fit.gamma_seconds_per_sqrt_byte = solved.coefficients[2];
  fit.relative_error = solved.relative_error;
  fit.provenance = Provenance::calibrated;
  qualities.push_back({fmt::format("{}, {} ranks{}", name_of(samples.collective), samples.ranks,
                                   samples.siblings > 1 ? fmt::format(" in {} groups", samples.siblings) : ""),
                       static_cast<int>(samples.times.size()), solved.held_out, solved.relative_error});
  return fit;
}

std::vector<FitQuality> fit_hardware(const CalibrationSamples& samples, HardwareSpec& hardware) {
  std::vector<FitQuality> qualities;
  Fitter fitter(samples, hardware, qualities);
  TimeConstants& time = hardware.time;
  for (const Pass pass : {Pass::forward, Pass::input_gradient, Pass::weight_gradient})
    time.gemm[pass] = fitter.gemm(pass);
  time.attention_forward = fitter.attention(false);
  time.attention_backward = fitter.attention(true);
  time.memory_bound = fitter.memory_bound();
  time.optimizer = fitter.optimizer();
  time.gemm_samples = samples.gemms;
  for (const SampledPlan& sampled : samples.plans)
    time.op_samples.insert(time.op_samples.end(), sampled.ops.begin(), sampled.ops.end());
  for (const SampledPlan& sampled : samples.plans)
    for (OpSample& sample : storage_samples(sampled)) time.op_samples.push_back(std::move(sample));
  for (const OpSample& sample : fitter.narrow_updates()) time.op_samples.push_back(sample);
  for (const AttentionSample& sample : samples.attention) replace_or_add(sample, time.op_samples);
  for (const CollectiveSamples& one : samples.collectives) time.collectives.push_back(fit_collective(one, qualities));
  return qualities;
}

}  // namespace reckon
