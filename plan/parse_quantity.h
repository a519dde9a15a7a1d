// Text <-> numbers with units. A unit is never guessed: a bare number where a unit is needed is refused, so is anything
// that does not fit the type. Writing and reading back gives the same value, bit for bit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plan/units.h"

namespace reckon {

/// "80GiB", "48 GB", "1.5 MiB", "123B" (rounded to a whole byte). Throws ConfigError, as all of these do.
Bytes parse_bytes(std::string_view text);
/// "25us", "1.5 ms", "60 s", "2 min", "1 h".
Seconds parse_seconds(std::string_view text);
/// "900 GB/s", "1.5 GiB/s"; bits as "200 Gb/s" or "200 Gbit/s".
BytesPerSecond parse_bytes_per_second(std::string_view text);
/// "312 TFLOP/s", "1.2 PFLOP/s"; TFLOPS and TFLOPs are read too.
FlopsPerSecond parse_flops_per_second(std::string_view text);
/// "4096", "64Ki" (65536), "10k" (10000), "1e6".
std::int64_t parse_count(std::string_view text);
/// A finite number without unit.
double parse_number(std::string_view text);

std::string write_bytes(Bytes bytes);
std::string write_seconds(Seconds seconds);
std::string write_bytes_per_second(BytesPerSecond rate);
std::string write_flops_per_second(FlopsPerSecond rate);
/// Shortest text that reads back to the same number.
std::string write_number(double number);

}  // namespace reckon
