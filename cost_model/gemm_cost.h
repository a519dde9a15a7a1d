// Seconds of a matrix product by shape, pass and number format.
#pragma once

#include "cost_model/collective_cost.h"
#include "plan/hardware_spec.h"
#include "plan/layer_ops.h"

namespace reckon {

/// `shape` is the forward product [m,k] x [k,n]; `pass` says which of its three products is meant, as in GemmSample.
/// An exactly measured sample is taken as it is; else the utilisation of the nearest measured shapes is transferred;
/// else the three-term fit with the losses of thin and misaligned shapes. `format` is what the product computes in.
/// Throws RuleError when the device has no peak for `format`.
CostEstimate gemm_cost(const HardwareSpec& hardware, const GemmShape& shape, Pass pass, NumberFormat format);

/// Dense peak of the device; throws RuleError naming what it can compute in.
FlopsPerSecond device_peak(const HardwareSpec& hardware, NumberFormat format);

}  // namespace reckon
