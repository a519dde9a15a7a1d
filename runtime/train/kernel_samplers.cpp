#include "runtime/train/kernel_samplers.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>

#include "runtime/train/ops/dispatch.h"
#include "runtime/train/ops/matrix_product.h"
#include "runtime/train/rank_model.h"

namespace reckon {
namespace {

template <class Work>
double seconds_of(Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

constexpr std::int64_t kCopied = 48 << 20;
constexpr int kRepetitions = 2;  // of each kernel in a round

}  // namespace

ProductSampler::ProductSampler(const std::vector<GemmShape>& shapes) {
  for (const GemmShape& s : shapes)
    for (const NumberFormat format : {NumberFormat::fp32, NumberFormat::bf16}) {
      const at::ScalarType type = scalar_type(format);
      products_.push_back({s,
                           format,
                           at::ones({s.m, s.k}, type),
                           at::ones({s.n, s.k}, type),
                           at::ones({s.m, s.n}, type),
                           at::zeros({s.n, s.k}, at::kFloat),
                           {}});
    }
}

void ProductSampler::sample() {
  for (Product& p : products_)
    for (int repetition = 0; repetition < kRepetitions; ++repetition) {
      p.series[0].add(seconds_of([&] { linear_forward(p.x, p.weight, p.y); }));
      p.series[1].add(seconds_of([&] { linear_input_gradient(p.y, p.weight, p.x); }));
      p.series[2].add(seconds_of([&] { linear_weight_gradient(p.y, p.x, p.gradient); }));
      p.x.fill_(1.0);  // results fed back would grow without bound
      p.y.fill_(1.0);
    }
}

void ProductSampler::drop_last() {
  for (Product& p : products_)
    for (SampleSeries& series : p.series) series.drop(kRepetitions);
}

double ProductSampler::relative_error() const {
  double sum = 0;
  for (const Product& p : products_)
    for (const SampleSeries& series : p.series) sum += series.relative_error();
  return sum / (3.0 * static_cast<double>(products_.size()));
}

std::vector<GemmSample> ProductSampler::samples() const {
  std::vector<GemmSample> samples;
  for (const Product& p : products_)
    for (int pass = 0; pass < 3; ++pass)
      samples.push_back(
          {1, p.shape.m, p.shape.n, p.shape.k, static_cast<Pass>(pass), p.format, Seconds(p.series[pass].result())});
  return samples;
}

FlopsPerSecond ProductSampler::peak(NumberFormat format) const {
  FlopsPerSecond peak;
  for (const Product& p : products_)
    for (const SampleSeries& series : p.series)
      if (p.format == format) peak = std::max(peak, FlopsPerSecond(p.shape.flops() / series.result()));
  return peak;
}

BandwidthSampler::BandwidthSampler()
    : source_(at::ones({kCopied}, at::kByte)), target_(at::zeros({kCopied}, at::kByte)) {}

void BandwidthSampler::sample() {
  for (int repetition = 0; repetition < 2; ++repetition) series_.add(seconds_of([&] { target_.copy_(source_); }));
}

BytesPerSecond BandwidthSampler::result() const {
  return BytesPerSecond(2.0 * static_cast<double>(kCopied) / series_.result());
}

}  // namespace reckon
