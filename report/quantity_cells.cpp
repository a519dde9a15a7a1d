#include "report/quantity_cells.h"

#include <fmt/format.h>

#include <cmath>

#include "report/format_quantity.h"

namespace reckon {

namespace {

constexpr double kGoodError = 0.05, kBadError = 0.15;  // colours only

Paint paint_of(double error) {
  return std::abs(error) <= kGoodError ? Paint::good : std::abs(error) <= kBadError ? Paint::warning : Paint::bad;
}

}  // namespace

std::string value_text(const std::optional<double>& value, Unit unit) {
  if (!value) return "-";
  switch (unit) {
    case Unit::seconds: return with_unit(Seconds(*value));
    case Unit::bytes: return with_unit(Bytes(static_cast<std::int64_t>(*value)));
    case Unit::calls: return grouped(static_cast<std::int64_t>(*value));
    case Unit::rate: return compact(*value) + " /s";
    case Unit::share: return percent(*value);
  }
  return "?";
}

Cell error_cell(const std::optional<double>& error, bool both_sides) {
  if (error) return Cell(signed_percent(*error), paint_of(*error));
  return Cell(both_sides ? "-" : "one side only", Paint::warning);
}

std::string blame_line(const WorstRow& worst, const std::string& of) {
  if (worst.aspect != Aspect::time && worst.aspect != Aspect::memory) return "";
  const bool time = worst.aspect == Aspect::time;
  return fmt::format("{}{} adds most to the error of the {} ({} of the measured {})\n", of.empty() ? "" : of + ": ",
                     worst.quantity, time ? "step time" : "peak memory", signed_percent(worst.error),
                     time ? "step" : "peak");
}

}  // namespace reckon
