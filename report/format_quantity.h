// Numbers for people: GiB, seconds, percent, with the unit written out.
#pragma once

#include <cstdint>
#include <string>

#include "plan/units.h"

namespace reckon {

std::string gib(Bytes bytes);                         // "41.23", "0.00512": GiB (2^30)
std::string with_unit(Bytes bytes);                   // "41.23 GiB", "512.0 MiB", "12.0 KiB", "7 bytes"
std::string with_unit(Seconds seconds);               // "12.34 s", "3.210 ms", "45.60 us"
std::string percent(double share, int decimals = 1);  // "12.3 %"; "-" when undefined
std::string signed_percent(double share);             // "+1.23 %"
std::string grouped(std::int64_t number);             // "13,015,864,320"
std::string compact(double number);                   // "13.0 B", "512.0 M", "12.3 k"

}  // namespace reckon
