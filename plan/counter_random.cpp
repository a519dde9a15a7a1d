#include "plan/counter_random.h"

#include <cmath>
#include <initializer_list>

#include "plan/split_mix.h"

namespace reckon {

namespace {

constexpr double kLn2High = 0x1.62e42fee00000p-1, kLn2Low = 0x1.a39ef35793c76p-33;  // their sum is ln 2 to 85 bits

/// Highest power first.
double polynomial(double x, std::initializer_list<double> coefficients) {
  double value = 0;
  for (const double c : coefficients) value = std::fma(value, x, c);
  return value;
}

double central(double r) {  // r = 0.425^2 - q^2
  const double top = polynomial(
      r, {2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
          1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0});
  const double bottom =
      polynomial(r, {5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
                     5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0});
  return top / bottom;
}

double near_tail(double r) {  // r = sqrt(-log p) - 1.6
  const double top = polynomial(
      r, {7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
          3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0});
  const double bottom = polynomial(
      r, {1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
          6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0});
  return top / bottom;
}

double far_tail(double r) {  // r = sqrt(-log p) - 5
  const double top = polynomial(
      r, {2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
          2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0});
  const double bottom = polynomial(
      r, {2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
          1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0});
  return top / bottom;
}

}  // namespace

std::uint64_t random_bits(std::uint64_t seed, std::uint64_t index) {
  constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15ull;
  return split_mix(split_mix(seed) + index * kGolden);
}

double uniform_number(std::uint64_t seed, std::uint64_t index) {
  const auto bits = static_cast<double>(random_bits(seed, index) >> 12);
  return (bits + 0.5) * 0x1p-52;
}

double inverse_normal(double p) {
  const double q = p - 0.5;
  if (std::fabs(q) <= 0.425) return q * central(std::fma(-q, q, 0.180625));
  const double r = std::sqrt(-portable_log(q < 0 ? p : 1 - p));
  const double tail = r <= 5 ? near_tail(r - 1.6) : far_tail(r - 5);
  return q < 0 ? -tail : tail;
}

double portable_exp(double x) {
  const double k = std::floor(std::fma(x, 1 / (kLn2High + kLn2Low), 0.5));
  const double r = std::fma(-k, kLn2Low, std::fma(-k, kLn2High, x));  // |r| <= ln 2 / 2
  double value = 1;
  for (int n = 14; n > 0; --n) value = std::fma(value, r / n, 1.0);  // Taylor; the 15th term is below 1e-18
  return std::ldexp(value, static_cast<int>(k));
}

double portable_log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // 1/2 <= m < 1
  if (m < 0x1.6a09e667f3bcdp-1) m *= 2, --exponent;
  const double s = (m - 1) / (m + 1), t = s * s;  // log m = 2 atanh s, |s| <= 0.1716
  double series = 0;
  for (int n = 23; n > 1; n -= 2) series = std::fma(series, t, 1.0 / n);
  const double fraction = std::fma(2 * s * t, series, 2 * s);
  return std::fma(exponent, kLn2High, std::fma(exponent, kLn2Low, fraction));
}

}  // namespace reckon
