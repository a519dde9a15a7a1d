#include "cost_model/gemm_cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "plan/errors.h"

namespace reckon {

namespace {

/// The product that really runs: out [rows, columns], inner dimension summed.
struct Product {
  double batch, rows, columns, inner;

  double flops() const { return 2.0 * batch * rows * columns * inner; }
};

Product product_of(const GemmShape& shape, Pass pass) {
  const auto batch = static_cast<double>(shape.batch), m = static_cast<double>(shape.m),
             n = static_cast<double>(shape.n), k = static_cast<double>(shape.k);
  switch (pass) {
    case Pass::input_gradient: return {batch, m, k, n};
    case Pass::weight_gradient: return {batch, k, n, m};
    case Pass::forward: break;
  }
  return {batch, m, n, k};
}

double element_bytes(NumberFormat format) {
  return std::max(1, payload_bits(format)) / 8.0;
}

/// Operands once in, result once out. fp8 and narrower products write 16-bit results; weight gradients are added to
/// fp32 ones: read and written beside the product's own result.
double product_bytes(const Product& p, Pass pass, NumberFormat format) {
  const double in = element_bytes(format);
  const double out = pass == Pass::weight_gradient ? 10.0 : std::max(2.0, in);  // gradients accumulate in fp32
  return p.batch * (in * p.inner * (p.rows + p.columns) + out * p.rows * p.columns);
}

// Output tiles of the usual kernels with the share of the peak rate that a full wave of them reaches, relative to the
// largest. Small grids take smaller tiles, or split the inner dimension.
struct Tile {
  double rows, columns, rate;
};
constexpr std::array<Tile, 4> kTiles{{{256, 128, 1.0}, {128, 128, 0.95}, {128, 64, 0.82}, {64, 64, 0.66}}};
constexpr double kSplitRate = 0.85;  // rate of a kernel that splits the inner dimension

/// Time of the tile grid over the time of a device filled all along: at least 1.
double wave_loss(const Product& p, int multiprocessors) {
  if (multiprocessors <= 0) return 1.0;
  double best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const double tiles = p.batch * std::ceil(p.rows / tile.rows) * std::ceil(p.columns / tile.columns);
    const double padded = tiles * tile.rows * tile.columns / (p.batch * p.rows * p.columns);
    const double waves = tiles / multiprocessors;
    // With many waves the last one overlaps with its predecessors; half of the quantization is seen.
    const double quantized = waves < 4.0 ? std::ceil(waves) / waves : 1.0 + 0.5 * (std::ceil(waves) / waves - 1.0);
    best = std::min(best, padded * quantized / tile.rate);
    const double splits = std::clamp(std::floor(p.inner / 512.0), 1.0, 16.0);
    const double split_waves = tiles * splits / multiprocessors;
    if (splits > 1.0 && waves < 1.0)
      best = std::min(best, padded * std::max(1.0, std::ceil(split_waves) / split_waves) / (tile.rate * kSplitRate));
  }
  return best;
}

/// Contiguous dimensions that are no multiple of 64 elements (128 bytes) cost a few per cent, those that are no
/// multiple of 8 (16 bytes) leave the fast kernels: 10922 against 10944 columns is 273 against 398 TFLOP/s on an H100.
double alignment_loss(const Product& p, bool is_cpu) {
  if (is_cpu) return 1.0;
  const auto loss = [](double size) {
    if (std::fmod(size, 8.0) != 0.0) return 1.45;
    return std::fmod(size, 64.0) != 0.0 ? 1.03 : 1.0;
  };
  return std::max(loss(p.columns), loss(p.inner));
}

OpFit fit_of(const HardwareSpec& hardware, Pass pass) {
  const auto found = hardware.time.gemm.find(pass);
  if (found != hardware.time.gemm.end()) return found->second;
  const auto forward = hardware.time.gemm.find(Pass::forward);
  if (forward == hardware.time.gemm.end()) return OpFit{};
  OpFit fit = forward->second;
  // Weight gradients that accumulate in fp32 are 4 to 7 % slower than forward (measured with TransformerEngine).
  if (pass == Pass::weight_gradient) fit.flops_factor *= 1.05;
  return fit;
}

double modelled_seconds(const HardwareSpec& hardware, const Product& p, Pass pass, NumberFormat format,
                        const OpFit& fit) {
  const double compute = fit.flops_factor * p.flops() / device_peak(hardware, format).value;
  const double bytes = fit.bytes_factor * product_bytes(p, pass, format) / hardware.device.memory_bandwidth.value;
  return compute * wave_loss(p, hardware.device.multiprocessors) * alignment_loss(p, hardware.device.is_cpu) + bytes +
         fit.constant.value;
}

double log_distance(const Product& a, const Product& b) {
  const double rows = std::log(a.rows / b.rows), columns = std::log(a.columns / b.columns),
               inner = std::log(a.inner / b.inner), batch = std::log(a.batch / b.batch);
  return std::sqrt(rows * rows + columns * columns + inner * inner + batch * batch);
}

/// measured / modelled at the nearest samples, weighted by inverse distance; 1 where none is within a factor of 4 in
/// every dimension. Exactness at a sample comes with it.
struct Transfer {
  double factor = 1.0;
  double nearest = std::numeric_limits<double>::infinity();
};

Transfer transferred_utilisation(const HardwareSpec& hardware, const Product& p, Pass pass, NumberFormat format,
                                 const OpFit& fit) {
  constexpr double kReach = 2.4;  // sqrt(3) * ln 4
  Transfer transfer;
  double weights = 0.0, sum = 0.0;
  for (const GemmSample& sample : hardware.time.gemm_samples) {
    if (sample.pass != pass || sample.format != format) continue;
    const Product at = product_of({sample.batch, sample.m, sample.n, sample.k}, pass);
    const double distance = log_distance(p, at);
    if (distance > kReach) continue;
    transfer.nearest = std::min(transfer.nearest, distance);
    const double weight = 1.0 / std::pow(distance + 1e-9, 3);
    weights += weight;
    sum += weight * std::log(sample.seconds.value / modelled_seconds(hardware, at, pass, format, fit));
  }
  if (weights > 0.0) transfer.factor = std::exp(sum / weights);
  return transfer;
}

}  // namespace

FlopsPerSecond device_peak(const HardwareSpec& hardware, NumberFormat format) {
  const auto found = hardware.device.peak.find(format);
  if (found != hardware.device.peak.end() && found->second.value > 0.0) return found->second;
  std::string known;
  for (const auto& [other, rate] : hardware.device.peak) {
    if (!known.empty()) known += ", ";
    known += name_of(other);
  }
  throw RuleError({{"the device " + hardware.device.name + " cannot compute in " + std::string(name_of(format)) +
                        "; it can in " + known,
                    {},
                    0,
                    0,
                    "precision.compute"}});
}

CostEstimate gemm_cost(const HardwareSpec& hardware, const GemmShape& shape, Pass pass, NumberFormat format) {
  if (shape.batch <= 0 || shape.m <= 0 || shape.n <= 0 || shape.k <= 0)
    return {Seconds(0.0), 0.0, Provenance::calibrated};
  const Product p = product_of(shape, pass);
  const OpFit fit = fit_of(hardware, pass);
  const double modelled = modelled_seconds(hardware, p, pass, format, fit);
  const Transfer transfer = transferred_utilisation(hardware, p, pass, format, fit);
  const Seconds seconds(modelled * transfer.factor);
  if (transfer.nearest < 1e-6) return {seconds, 0.02, Provenance::calibrated};
  if (std::isfinite(transfer.nearest)) return {seconds, 0.6 * fit.relative_error, Provenance::interpolated};
  return {seconds, fit.relative_error, fit.provenance};
}

}  // namespace reckon
