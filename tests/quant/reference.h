// The formats written down a second time, as tables and plain loops in double precision, to test runtime/quant against.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/number_format.h"

namespace reckon {

/// Value of every code of a format (index = code), before scale and minimum; codes that are never written hold NaN.
std::vector<double> reference_values(NumberFormat format);

/// Largest value of the format.
double reference_largest(NumberFormat format);

/// Nearest code to `value` in units of the scale; a tie goes to the even code (of magnitudes, for formats with a sign).
std::uint32_t reference_code(NumberFormat format, double value);

/// All block-scaled formats.
std::vector<NumberFormat> block_formats();

}  // namespace reckon
