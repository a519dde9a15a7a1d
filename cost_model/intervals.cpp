#include "cost_model/intervals.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace reckon {

namespace {

constexpr double kNormal80 = 1.2816;  // half width of the central 80 % of a normal distribution

// Errors common to all ops of a machine: a calibration taken on it drifts by clocks and software; a datasheet with
// priors says nothing on the kernels in use.
constexpr double kCalibratedCommon = 0.03;
constexpr double kAssumedCommon = 0.13;
constexpr double kCommunicationError = 0.30;  // all collectives together, where none is measured
constexpr double kBubbleError = 0.10;

/// Measured on the machine itself; constants from published tables of the same card do not count.
bool is_calibrated(const HardwareSpec& hardware) {
  return !hardware.time.gemm_samples.empty() || !hardware.time.op_samples.empty();
}

bool is_compute(std::string_view component) {
  for (const std::string_view phase : {"forward.", "backward.", "recompute."})
    if (component.substr(0, phase.size()) == phase) return true;
  return component == "optimizer";
}

double op_error(const HardwareSpec& hardware) {
  const auto forward = hardware.time.gemm.find(Pass::forward);
  return forward == hardware.time.gemm.end() ? OpFit{}.relative_error : forward->second.relative_error;
}

double communication_error(const HardwareSpec& hardware) {
  double worst = 0.0;
  for (const CollectiveFit& fit : hardware.time.collectives) worst = std::max(worst, fit.relative_error);
  return hardware.time.collectives.empty() ? kCommunicationError : std::max(0.05, worst);
}

}  // namespace

double step_time_deviation(const Plan& plan, const std::vector<TimeComponent>& components) {
  double total = 0.0, communication = 0.0, bubble = 0.0, squares = 0.0;
  for (const TimeComponent& one : components) {
    const double exposed = one.exposed_seconds.value;
    total += exposed;
    if (is_compute(one.component)) squares += exposed * exposed;
    else if (one.component == "bubble") bubble += exposed;
    else communication += exposed;
  }
  if (total <= 0.0) return 0.0;
  const double common = is_calibrated(plan.hardware) ? kCalibratedCommon : kAssumedCommon;
  const double independent = op_error(plan.hardware) * std::sqrt(squares) / total;
  const double network = communication_error(plan.hardware) * communication / total;
  const double waiting = kBubbleError * bubble / total;
  return std::sqrt(common * common + independent * independent + network * network + waiting * waiting);
}

double memory_deviation(const Plan& plan) {
  // GPUs: the stack that will run is not known. With 0.12 an 80 % interval holds 80 % of the public runs whose
  // allocator was recorded, Megatron-LM and nanotron weighted equally (docs/accuracy.md).
  return plan.hardware.device.is_cpu ? 0.01 : 0.12;
}

double interval_factor(double deviation) {
  return std::exp(kNormal80 * deviation);
}

double memory_interval_factor(const Plan& plan) {
  return interval_factor(memory_deviation(plan));
}

double fit_probability(Bytes need, Bytes limit, double deviation) {
  if (need.value <= 0) return 1.0;
  if (limit.value <= 0) return 0.0;
  const double margin = std::log(limit / need) / std::max(1e-6, deviation);
  return 0.5 * std::erfc(-margin / std::sqrt(2.0));
}

}  // namespace reckon
