#include "cost_model/storage_rates.h"

#include <string>

#include "plan/core_sharing.h"

namespace reckon {
namespace {

constexpr const char* kOp = "storage";
constexpr double kBytes = 1 << 20;  // that a sample's seconds are for

StorageTimes rate_of(const OpSample& sample) {
  return {sample.forward / kBytes, sample.backward / kBytes};
}

}  // namespace

StorageRates storage_rates(const Plan& plan) {
  const HardwareSpec& hardware = plan.hardware;
  const Seconds by_bytes(hardware.time.memory_bound.bytes_factor / hardware.device.memory_bandwidth.value);
  StorageRates rates{{by_bytes, by_bytes}, {}};
  for (const OpSample& sample : hardware.time.op_samples) {
    if (sample.op != kOp || sample.format != plan.precision.compute) continue;
    const std::string stored = sample.shape.substr(0, sample.shape.find(','));
    const auto format = number_format(stored);
    if (!format) continue;
    if (rates.measured.empty()) rates.unmeasured = rate_of(sample);
    const bool exact = sample.shape == beside_others(stored, ranks_at_once(plan));
    if (exact) rates.measured.insert_or_assign(*format, rate_of(sample));
    else rates.measured.emplace(*format, rate_of(sample));
  }
  rates *= hardware.time.global_factor;
  return rates;
}

std::vector<OpSample> storage_samples(const SampledPlan& sampled) {
  const StorageUse use = storage_use(sampled.plan);
  std::vector<OpSample> samples;
  if (use.bytes.value <= 0) return samples;
  const double unit = kBytes / static_cast<double>(use.bytes.value);
  for (const NumberFormat format : use.formats)
    samples.push_back({kOp, beside_others(std::string(name_of(format)), sampled.plan.world_size()),
                       sampled.storage.quantize * unit, sampled.storage.dequantize * unit,
                       sampled.plan.precision.compute});
  return samples;
}

}  // namespace reckon
