// Gradients of test ranks and how far a reduction of them is from their exact sum.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "runtime/quant/quantize.h"

namespace reckon::testing {

inline std::vector<float> gradients_of(int rank, std::int64_t count) {
  std::mt19937 generator(static_cast<unsigned>(77 + rank));
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(generator) * 1e-3f;
  return values;
}

inline std::vector<float> round_trip(const std::vector<float>& values, Storage wire) {
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(storage_bytes(wire, static_cast<std::int64_t>(values.size())).value));
  std::vector<float> decoded(values.size());
  quantize(values, wire, {}, bytes);
  dequantize(bytes, wire, decoded);
  return decoded;
}

/// ||found - exact|| / ||exact|| with the exact sum in double precision.
inline double relative_error(const std::vector<float>& found, int ranks) {
  std::vector<double> exact(found.size());
  for (int rank = 0; rank < ranks; ++rank) {
    const auto next = gradients_of(rank, static_cast<std::int64_t>(found.size()));
    for (std::size_t i = 0; i < exact.size(); ++i) exact[i] += static_cast<double>(next[i]);
  }
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    difference += std::pow(static_cast<double>(found[i]) - exact[i], 2);
    norm += exact[i] * exact[i];
  }
  return std::sqrt(difference / norm);
}

}  // namespace reckon::testing
