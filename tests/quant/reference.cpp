#include "tests/quant/reference.h"

#include <cmath>
#include <limits>
#include <string>

namespace reckon {
namespace {

constexpr double kNever = std::numeric_limits<double>::quiet_NaN();

bool is_integer_format(NumberFormat format) {
  const std::string name(name_of(format));
  return name.starts_with("int") || name.starts_with("uint");
}

/// Magnitudes 0, 1, 2 ... of a floating format, in the order of their codes.
std::vector<double> magnitudes(int exponent_bits, int mantissa_bits, double largest) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  std::vector<double> values;
  for (int exponent = 0; exponent < 1 << exponent_bits; ++exponent)
    for (int mantissa = 0; mantissa < 1 << mantissa_bits; ++mantissa) {
      const double fraction = static_cast<double>(mantissa) / (1 << mantissa_bits);
      const double value = exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
      values.push_back(value <= largest ? value : kNever);
    }
  return values;
}

std::vector<double> with_signs(std::vector<double> values) {
  const std::size_t half = values.size();
  for (std::size_t i = 0; i < half; ++i) values.push_back(-values[i]);
  return values;
}

}  // namespace

std::vector<double> reference_values(NumberFormat format) {
  switch (format) {
    case NumberFormat::fp8_e4m3: return with_signs(magnitudes(4, 3, 448));
    case NumberFormat::fp8_e5m2: return with_signs(magnitudes(5, 2, 57344));
    case NumberFormat::fp6_e2m3: return with_signs(magnitudes(2, 3, 7.5));
    case NumberFormat::fp6_e3m2: return with_signs(magnitudes(3, 2, 28));
    case NumberFormat::fp4_e2m1:
    case NumberFormat::mxfp4:
    case NumberFormat::nvfp4: return {0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6};
    case NumberFormat::nf4:  // QLoRA, arXiv 2305.14314, appendix E
      return {-1.0,
              -0.6961928009986877,
              -0.5250730514526367,
              -0.39491748809814453,
              -0.28444138169288635,
              -0.18477343022823334,
              -0.09105003625154495,
              0.0,
              0.07958029955625534,
              0.16093020141124725,
              0.24611230194568634,
              0.33791524171829224,
              0.44070982933044434,
              0.5626170039176941,
              0.7229568362236023,
              1.0};
    default: break;
  }
  const int bits = payload_bits(format);
  std::vector<double> values;
  for (int code = 0; code < 1 << bits; ++code) {
    const bool negative = !is_affine(format) && code >= 1 << (bits - 1);
    values.push_back(negative ? code - (1 << bits) : code);
  }
  if (!is_affine(format)) values[std::size_t{1} << (bits - 1)] = kNever;  // the most negative one
  return values;
}

double reference_largest(NumberFormat format) {
  double largest = 0;
  for (const double value : reference_values(format))
    if (value > largest) largest = value;
  return largest;
}

std::uint32_t reference_code(NumberFormat format, double value) {
  const std::vector<double> values = reference_values(format);
  const bool sign_and_magnitude = !is_integer_format(format) && format != NumberFormat::nf4;
  const std::size_t half = values.size() / 2;
  std::uint32_t best = 0;
  double smallest = std::numeric_limits<double>::infinity();
  for (std::size_t code = 0; code < values.size(); ++code) {
    if (std::isnan(values[code])) continue;
    if (sign_and_magnitude && std::signbit(value) != (code >= half)) continue;
    const double distance = std::abs(values[code] - value);
    if (distance < smallest || (distance == smallest && code % 2 == 0)) {
      smallest = distance;
      best = static_cast<std::uint32_t>(code);
    }
  }
  return best;
}

std::vector<NumberFormat> block_formats() {
  std::vector<NumberFormat> formats;
  for (const NumberFormat format : all_number_formats())
    if (is_block_scaled(format)) formats.push_back(format);
  return formats;
}

}  // namespace reckon
