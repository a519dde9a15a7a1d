#include "cost_model/score_cells.h"

#include <fmt/format.h>

#include <charconv>

#include "plan/errors.h"

namespace reckon {

std::int64_t whole_number(const std::string& text, const std::string& where) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw ConfigError(fmt::format("{} of the source is '{}'; a whole number is needed", where, text));
  return value;
}

std::optional<std::string> ScoreCells::known(const std::string& column) const {
  const auto found = source_.cells.find(column);
  return found == source_.cells.end() ? std::nullopt : std::optional(found->second);
}

std::string ScoreCells::text_or(const std::string& column, const std::string& fallback) {
  if (!empty(column)) return text(column);
  assumed(column);
  return known(column).value_or(fallback);
}

std::int64_t ScoreCells::count_or(const std::string& column, std::int64_t fallback) {
  if (const auto value = count(column)) return *value;
  assumed(column);
  const std::optional<std::string> value = known(column);
  return value ? whole_number(*value, "cells." + column) : fallback;
}

}  // namespace reckon
