// What storing activations in fewer bits costs on a plan's hardware: as measured in training steps, else by bytes.
#pragma once

#include <vector>

#include "plan/calibration_samples.h"
#include "plan/plan.h"
#include "plan/storage_passes.h"

namespace reckon {

/// Formats that no calibration measured have the rates of the first one that was, else those of a pass bound by memory.
StorageRates storage_rates(const Plan& plan);

/// One for each format that the sampled plan stores in: op "storage", seconds of 2^20 bytes read and written. A plan
/// with several formats shows their mean only.
std::vector<OpSample> storage_samples(const SampledPlan& sampled);

}  // namespace reckon
