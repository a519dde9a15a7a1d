// Samplers of single kernels: matrix products and memory bandwidth.
#pragma once

#include <ATen/core/Tensor.h>

#include "plan/calibration_samples.h"
#include "plan/layer_ops.h"
#include "runtime/train/sample_series.h"
#include "runtime/train/sampler.h"

namespace reckon {

/// The three products of some shapes, in FP32 and BF16.
class ProductSampler : public Sampler {
 public:
  explicit ProductSampler(const std::vector<GemmShape>& shapes);
  void sample() override;
  void drop_last() override;
  double relative_error() const override;

  std::vector<GemmSample> samples() const;
  /// FLOP/s of the fastest product.
  FlopsPerSecond peak(NumberFormat format) const;

 private:
  struct Product {
    GemmShape shape;
    NumberFormat format;
    at::Tensor x, weight, y, gradient;
    SampleSeries series[3];  // by Pass
  };
  std::vector<Product> products_;
};

/// Reads one array and writes another, both far larger than the caches.
class BandwidthSampler : public Sampler {
 public:
  BandwidthSampler();
  void sample() override;
  void drop_last() override { series_.drop(2); }
  double relative_error() const override { return series_.relative_error() / 3; }
  BytesPerSecond result() const;

 private:
  at::Tensor source_, target_;
  SampleSeries series_;
};

}  // namespace reckon
