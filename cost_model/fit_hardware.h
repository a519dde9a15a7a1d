// The constants of the time model from what a calibration measured.
#pragma once

#include <string>
#include <vector>

#include "plan/calibration_samples.h"

namespace reckon {

/// How well a fit predicts samples that were kept from it (relative_fit.h).
struct FitQuality {
  std::string kind;  // "product, forward"
  int samples = 0, held_out = 0;
  double relative_error = 0;
};

/// Fills `hardware.time` with samples and fits. Needs the device's peaks and memory bandwidth. Terms (docs/time.md):
/// products FLOPs / peak, bytes / bandwidth and a constant by pass, the peak being that of the format; attention the
/// same over visible pairs; other ops and the optimizer bytes and a constant; collectives by group layout a constant,
/// the root of the bytes and the bytes.
std::vector<FitQuality> fit_hardware(const CalibrationSamples& samples, HardwareSpec& hardware);

/// seconds = alpha + gamma sqrt(bytes) + bytes / bandwidth. At least three sizes. Adds its quality to `qualities`.
CollectiveFit fit_collective(const CollectiveSamples& samples, std::vector<FitQuality>& qualities);

}  // namespace reckon
