#include "plan/parse_quantity.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include "plan/errors.h"

namespace reckon {

namespace {

/// One spelling of a unit: value = number * 10^exponent * factor. Powers of ten are applied to the decimal text, so
/// that "25us" is the double nearest to 25e-6.
struct Unit {
  std::string_view name;
  int exponent = 0;
  double factor = 1.0;
};

constexpr double kKi = 1024.0, kMi = kKi * kKi, kGi = kMi * kKi, kTi = kGi * kKi, kPi = kTi * kKi;

constexpr Unit kByteUnits[] = {{"B"},           {"kB", 3},       {"KB", 3},       {"MB", 6},       {"GB", 9},
                               {"TB", 12},      {"PB", 15},      {"KiB", 0, kKi}, {"MiB", 0, kMi}, {"GiB", 0, kGi},
                               {"TiB", 0, kTi}, {"PiB", 0, kPi}, {"bytes"},       {"kib", 0, kKi}, {"mib", 0, kMi},
                               {"gib", 0, kGi}, {"tib", 0, kTi}};

constexpr Unit kSecondUnits[] = {{"s"},      {"ms", -3},  {"us", -6},       {"µs", -6},
                                 {"ns", -9}, {"ps", -12}, {"min", 0, 60.0}, {"h", 0, 3600.0}};

constexpr Unit kRateUnits[] = {{"B/s"},
                               {"kB/s", 3},
                               {"KB/s", 3},
                               {"MB/s", 6},
                               {"GB/s", 9},
                               {"TB/s", 12},
                               {"KiB/s", 0, kKi},
                               {"MiB/s", 0, kMi},
                               {"GiB/s", 0, kGi},
                               {"TiB/s", 0, kTi},
                               {"b/s", 0, 0.125},
                               {"kb/s", 3, 0.125},
                               {"Mb/s", 6, 0.125},
                               {"Gb/s", 9, 0.125},
                               {"Tb/s", 12, 0.125},
                               {"Mbit/s", 6, 0.125},
                               {"Gbit/s", 9, 0.125}};

constexpr Unit kFlopUnits[] = {{"FLOP/s"},     {"MFLOP/s", 6}, {"GFLOP/s", 9}, {"TFLOP/s", 12}, {"PFLOP/s", 15},
                               {"GFLOPS", 9},  {"TFLOPS", 12}, {"PFLOPS", 15}, {"GFLOPs", 9},   {"TFLOPs", 12},
                               {"PFLOPs", 15}, {"TOP/s", 12},  {"TOPS", 12}};

constexpr Unit kCountUnits[] = {{""},     {"k", 3},  {"K", 3},       {"M", 6},       {"G", 9},
                                {"B", 9}, {"T", 12}, {"Ki", 0, kKi}, {"Mi", 0, kMi}, {"Gi", 0, kGi}};

/// What a kind of quantity is called in messages, its spellings, and an example.
struct Kind {
  std::string_view what;
  std::span<const Unit> units;
  std::string_view example;
};

constexpr Kind kBytes{"a size", kByteUnits, "80GiB, 48 GB or 123B"};
constexpr Kind kSeconds{"a time", kSecondUnits, "25us, 1.5 ms or 60s"};
constexpr Kind kRate{"a bandwidth", kRateUnits, "900 GB/s or 200 Gb/s"};
constexpr Kind kFlops{"a compute rate", kFlopUnits, "312 TFLOP/s"};
constexpr Kind kCount{"a whole number", kCountUnits, "8192, 64Ki or 10k"};

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

/// Length of the decimal number at the start: sign, digits with one point, exponent. 0 = none.
std::size_t number_length(std::string_view text) {
  const auto digits = [&](std::size_t at) {
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    return at;
  };
  const std::size_t start = (!text.empty() && (text[0] == '-' || text[0] == '+')) ? 1 : 0;
  const std::size_t whole = digits(start);
  std::size_t end = whole;
  std::size_t count = whole - start;
  if (end < text.size() && text[end] == '.') {
    end = digits(whole + 1);
    count += end - whole - 1;
  }
  if (count == 0) return 0;
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    const std::size_t sign = end + 1 < text.size() && (text[end + 1] == '-' || text[end + 1] == '+') ? 1 : 0;
    const std::size_t exponent = digits(end + 1 + sign);
    if (exponent > end + 1 + sign) end = exponent;
  }
  return end;
}

[[noreturn]] void refuse(std::string_view text, const Kind& kind, std::string_view problem) {
  throw ConfigError(fmt::format("'{}' is not {}: {}; write it like {}", text, kind.what, problem, kind.example));
}

/// number * 10^exponent, rounded once. Empty when it is too large for a double.
std::optional<double> scaled(std::string_view number, int exponent) {
  if (number.front() == '+') number.remove_prefix(1);
  std::size_t mantissa = number.find_first_of("eE");
  long own = 0;
  if (mantissa == std::string_view::npos) {
    mantissa = number.size();
  } else {
    std::string_view digits = number.substr(mantissa + 1);
    if (digits.front() == '+') digits.remove_prefix(1);
    if (std::from_chars(digits.data(), digits.data() + digits.size(), own).ec != std::errc()) {
      own = digits.front() == '-' ? -100000 : 100000;  // beyond any double, either way
    }
  }
  const std::string decimal = fmt::format("{}e{}", number.substr(0, mantissa), own + exponent);
  double value = 0;
  const auto [end, error] = std::from_chars(decimal.data(), decimal.data() + decimal.size(), value);
  if (error == std::errc::result_out_of_range) return own + exponent < 0 ? std::optional(0.0) : std::nullopt;
  if (error != std::errc() || end != decimal.data() + decimal.size()) return std::nullopt;
  return value;
}

double parse(std::string_view raw, const Kind& kind) {
  const std::string_view text = trim(raw);
  if (text.empty()) refuse(text, kind, "nothing is written");
  const std::size_t length = number_length(text);
  if (length == 0) refuse(text, kind, "it does not start with a number");
  const std::string_view name = trim(text.substr(length));
  for (const Unit& unit : kind.units) {
    if (unit.name != name) continue;
    const std::optional<double> number = scaled(text.substr(0, length), unit.exponent);
    const double value = number.value_or(std::numeric_limits<double>::infinity()) * unit.factor;
    if (!std::isfinite(value)) refuse(text, kind, "it is too large to be represented");
    return value;
  }
  if (name.empty()) refuse(text, kind, "the unit is missing");
  refuse(text, kind, fmt::format("'{}' is not a unit of {}", name, kind.what.substr(kind.what.find(' ') + 1)));
}

/// A double that is a whole number below 2^63, or a refusal.
std::int64_t whole(double value, std::string_view text, const Kind& kind) {
  if (std::abs(value) >= 9223372036854775808.0) refuse(text, kind, "it is too large to be represented");
  if (value != std::trunc(value)) refuse(text, kind, "it has a fraction");
  return static_cast<std::int64_t>(value);
}

/// Digits only, the common case: exact up to 2^63 - 1, where a double would round.
std::optional<std::int64_t> plain_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Prefix {
  std::string_view name;
  int exponent;
};

/// Shortest digits of `value` with the prefix that leaves 1 to 999 before the point.
std::string with_prefix(double value, std::span<const Prefix> prefixes, std::string_view unit) {
  std::string_view prefix;
  int exponent = 0;
  for (const Prefix& candidate : prefixes) {
    prefix = candidate.name;
    exponent = candidate.exponent;
    if (std::abs(value) >= std::pow(10.0, exponent) * 0.9999999) break;
  }
  if (value == 0) prefix = {}, exponent = 0;
  const std::string digits = fmt::format("{}", value);
  // The shift may round; then the plain number with its exponent is the exact text.
  for (int precision = 1; precision <= 17; ++precision) {
    const std::string rounded = fmt::format("{:.{}g}", value * std::pow(10.0, -exponent), precision);
    const std::string shifted = fmt::format("{}", scaled(rounded, 0).value_or(0));  // 60, not 6e+01
    if (scaled(shifted, exponent) == value) return fmt::format("{} {}{}", shifted, prefix, unit);
  }
  return fmt::format("{} {}", digits, unit);
}

}  // namespace

Bytes parse_bytes(std::string_view text) {
  const std::string_view trimmed = trim(text);
  if (trimmed.size() > 1 && trimmed.back() == 'B') {
    if (const auto exact = plain_integer(trim(trimmed.substr(0, trimmed.size() - 1)))) return Bytes(*exact);
  }
  const double value = parse(text, kBytes);
  if (std::abs(value) < 1 && value != 0) refuse(trimmed, kBytes, "it is less than one byte");
  return Bytes(whole(std::round(value), trimmed, kBytes));
}

Seconds parse_seconds(std::string_view text) {
  return Seconds(parse(text, kSeconds));
}

BytesPerSecond parse_bytes_per_second(std::string_view text) {
  return BytesPerSecond(parse(text, kRate));
}

FlopsPerSecond parse_flops_per_second(std::string_view text) {
  return FlopsPerSecond(parse(text, kFlops));
}

std::int64_t parse_count(std::string_view text) {
  const std::string_view trimmed = trim(text);
  if (const auto exact = plain_integer(trimmed)) return *exact;
  return whole(parse(text, kCount), trimmed, kCount);
}

double parse_number(std::string_view text) {
  constexpr Unit kNone[] = {{""}};
  return parse(text, Kind{"a number", kNone, "0.1 or 3e-4"});
}

std::string write_bytes(Bytes bytes) {
  constexpr std::pair<std::int64_t, std::string_view> kUnits[] = {
      {1LL << 30, "GiB"}, {1000000000, "GB"}, {1LL << 20, "MiB"}, {1000000, "MB"}, {1LL << 10, "KiB"}};
  for (const auto& [size, name] : kUnits) {
    if (bytes.value != 0 && bytes.value % size == 0) return fmt::format("{} {}", bytes.value / size, name);
  }
  return fmt::format("{} B", bytes.value);
}

std::string write_seconds(Seconds seconds) {
  constexpr Prefix kPrefixes[] = {{"", 0}, {"m", -3}, {"u", -6}, {"n", -9}};
  return with_prefix(seconds.value, kPrefixes, "s");
}

std::string write_bytes_per_second(BytesPerSecond rate) {
  constexpr Prefix kPrefixes[] = {{"T", 12}, {"G", 9}, {"M", 6}, {"k", 3}, {"", 0}};
  return with_prefix(rate.value, kPrefixes, "B/s");
}

std::string write_flops_per_second(FlopsPerSecond rate) {
  constexpr Prefix kPrefixes[] = {{"T", 12}, {"G", 9}, {"M", 6}, {"", 0}};
  return with_prefix(rate.value, kPrefixes, "FLOP/s");
}

std::string write_number(double number) {
  return fmt::format("{}", number);
}

}  // namespace reckon
