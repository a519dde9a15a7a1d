#include "runtime/train/initial_weights.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>
#include <string_view>
#include <vector>

#include "plan/split_mix.h"

namespace reckon {
namespace {

constexpr double kDeviation = 0.02;

std::uint64_t hash_of(std::string_view name) {
  std::uint64_t hash = 0;
  for (const char character : name) hash = split_mix(hash ^ static_cast<unsigned char>(character));
  return hash;
}

/// Standard normal number of one counter value (Box-Muller on the two halves of the hash).
double normal(std::uint64_t key, std::uint64_t index) {
  const std::uint64_t bits = split_mix(key + index);
  const double first = (static_cast<double>(bits >> 32) + 1.0) / 4294967296.0;  // (0, 1]
  const double second = static_cast<double>(bits & 0xFFFFFFFFu) / 4294967296.0;
  return std::sqrt(-2.0 * std::log(first)) * std::cos(2.0 * std::numbers::pi * second);
}

/// Place in the whole tensor of element (row, column) of the local slice.
std::uint64_t place(const LocalParameter& parameter, std::int64_t row, std::int64_t column) {
  const std::int64_t width = parameter.whole.shape.size() > 1 ? parameter.whole.shape[1] : 1;
  const bool by_columns = parameter.whole.split == Split::columns;
  const std::int64_t whole_row = by_columns ? row : parameter.first + row;
  const std::int64_t whole_column = by_columns ? parameter.first + column : column;
  return static_cast<std::uint64_t>(whole_row * width + whole_column);
}

bool is_bias(std::string_view name) {
  return name.ends_with(".bias");
}

}  // namespace

void fill_initial_weight(const LocalParameter& parameter, std::uint64_t seed, const at::Tensor& target) {
  if (parameter.whole.shape.size() == 1) {
    target.fill_(is_bias(parameter.whole.name) ? 0.0 : 1.0);
    return;
  }
  const std::uint64_t key = split_mix(seed ^ hash_of(parameter.whole.name));
  const std::int64_t width = target.size(1);
  std::vector<double> row_values(static_cast<std::size_t>(width));
  for (std::int64_t row = 0; row < target.size(0); ++row) {
    if (parameter.whole.split != Split::columns && parameter.first + row >= parameter.whole.shape[0]) {
      target[row].zero_();  // padding of a vocabulary table
      continue;
    }
    for (std::int64_t column = 0; column < width; ++column)
      row_values[static_cast<std::size_t>(column)] = kDeviation * normal(key, place(parameter, row, column));
    target[row].copy_(at::from_blob(row_values.data(), {width}, at::kDouble));
  }
}

}  // namespace reckon
