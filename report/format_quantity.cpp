#include "report/format_quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace reckon {

namespace {

/// Four significant figures, with no more than three decimals.
std::string four_figures(double number) {
  const double size = std::abs(number);
  const int decimals = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
  return fmt::format("{:.{}f}", number, decimals);
}

}  // namespace

std::string gib(Bytes bytes) {
  const double size = static_cast<double>(bytes.value) / kGiB;
  // Below 1 GiB three figures, so that a small model's table does not consist of zeros.
  if (bytes.value == 0 || std::abs(size) >= 1) return four_figures(size);
  return fmt::format("{:.{}f}", size, std::min(9, 2 - static_cast<int>(std::floor(std::log10(std::abs(size))))));
}

std::string with_unit(Bytes bytes) {
  const double size = std::abs(static_cast<double>(bytes.value));
  if (size >= kGiB) return gib(bytes) + " GiB";
  if (size >= kMiB) return four_figures(static_cast<double>(bytes.value) / kMiB) + " MiB";
  if (size >= 1024) return four_figures(static_cast<double>(bytes.value) / 1024) + " KiB";
  return fmt::format("{} bytes", bytes.value);
}

std::string with_unit(Seconds seconds) {
  const double size = std::abs(seconds.value);
  if (size == 0) return "0 s";
  if (size >= 1) return four_figures(seconds.value) + " s";
  if (size >= 1e-3) return four_figures(seconds.value * 1e3) + " ms";
  return four_figures(seconds.value * 1e6) + " us";
}

std::string percent(double share, int decimals) {
  return std::isfinite(share) ? fmt::format("{:.{}f} %", share * 100, decimals) : "-";
}

std::string signed_percent(double share) {
  if (!std::isfinite(share)) return "-";
  if (share == 0) return "0 %";
  const double size = std::abs(share) * 100;
  return fmt::format("{:+.{}f} %", share * 100, size >= 10 ? 1 : size >= 0.01 ? 2 : 4);
}

std::string grouped(std::int64_t number) {
  std::string digits = fmt::format("{}", number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t place = digits.size(); place > first + 3;) digits.insert(place -= 3, 1, ',');
  return digits;
}

std::string compact(double number) {
  const double size = std::abs(number);
  if (size >= 1e12) return fmt::format("{:.2f} T", number / 1e12);
  if (size >= 1e9) return fmt::format("{:.2f} B", number / 1e9);
  if (size >= 1e6) return fmt::format("{:.2f} M", number / 1e6);
  if (size >= 1e4) return fmt::format("{:.1f} k", number / 1e3);
  return four_figures(number);
}

}  // namespace reckon
