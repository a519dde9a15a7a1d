// Random numbers that depend on nothing but (seed, index), the same on every machine and in any order of asking. All
// arithmetic is exact or a correctly rounded fused multiply-add, so no compiler or library can change a bit.
#pragma once

#include <cstdint>

namespace reckon {

/// 64 well-mixed bits of (seed, index): two rounds of SplitMix64.
std::uint64_t random_bits(std::uint64_t seed, std::uint64_t index);

/// In (0, 1), 52 bits.
double uniform_number(std::uint64_t seed, std::uint64_t index);

/// Inverse of the standard normal distribution (Wichura's AS 241, relative error about 1e-16). 0 < p < 1.
double inverse_normal(double p);

/// Natural exponential and logarithm (x > 0), within a few units in the last place.
double portable_exp(double x);
double portable_log(double x);

}  // namespace reckon
