#include "report/compare_many.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/checked_json.h"
#include "report/quantity_cells.h"

namespace reckon {

namespace {

constexpr std::size_t kRowsShown = 12;  // of one aspect, the largest

ManyRow& row_named(ManyComparison& comparison, const ComparisonRow& row) {
  const auto found = std::find_if(comparison.rows.begin(), comparison.rows.end(),
                                  [&](const ManyRow& other) { return other.quantity == row.quantity; });
  if (found != comparison.rows.end()) return *found;
  const std::size_t profiles = comparison.columns.size();
  comparison.rows.push_back({row.quantity, row.aspect, row.unit, std::vector<std::optional<double>>(profiles),
                             std::vector<std::optional<double>>(profiles - 1)});
  return comparison.rows.back();
}

double size_of(const ManyRow& row) {
  double size = 0;
  for (const auto& value : row.values) size = std::max(size, std::abs(value.value_or(0.0)));
  return size;
}

std::vector<ManyRow> largest_rows(const ManyComparison& comparison, Aspect aspect) {
  std::vector<ManyRow> rows;
  for (const ManyRow& row : comparison.rows)
    if (row.aspect == aspect && size_of(row) > 0) rows.push_back(row);
  if (aspect == Aspect::time)
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return size_of(a) > size_of(b); });
  return rows;
}

std::string aspect_table(const ManyComparison& comparison, Aspect aspect, const TextStyle& style) {
  const auto rows = largest_rows(comparison, aspect);
  if (rows.empty()) return "";
  std::vector<std::string> header = {std::string(name_of(aspect))};
  for (std::size_t i = 0; i < comparison.columns.size(); ++i) {
    header.push_back(comparison.columns[i]);
    if (i + 1 < comparison.columns.size()) header.emplace_back("error");
  }
  Table table(header);
  for (std::size_t i = 0; i < std::min(rows.size(), kRowsShown); ++i) {
    const ManyRow& row = rows[i];
    std::vector<Cell> cells = {aspect == Aspect::total ? row.quantity
                                                       : row.quantity.substr(row.quantity.find('.') + 1)};
    for (std::size_t k = 0; k < row.values.size(); ++k) {
      cells.emplace_back(value_text(row.values[k], row.unit));
      if (k < row.errors.size()) cells.push_back(error_cell(row.errors[k], row.values[k] && row.values.back()));
    }
    table.add(std::move(cells));
  }
  const std::size_t more = rows.size() - std::min(rows.size(), kRowsShown);
  return table.text(style) + (more > 0 ? fmt::format("and {} more (--json lists all)\n", more) : "") + "\n";
}

Json numbers(const std::vector<std::optional<double>>& values) {
  Json list = Json::array();
  for (const auto& value : values) list.push_back(value ? Json(*value) : Json());
  return list;
}

}  // namespace

ManyComparison compare_many(const std::vector<std::string>& names, const std::vector<StepProfile>& profiles) {
  ManyComparison comparison;
  comparison.columns = names;
  for (std::size_t i = 0; i + 1 < profiles.size(); ++i) {
    comparison.pairs.push_back(compare_profiles(profiles[i], std::nullopt, profiles.back()));
    for (const ComparisonRow& row : comparison.pairs.back().rows) {
      ManyRow& many = row_named(comparison, row);
      many.values[i] = row.predicted;
      if (row.measured) many.values.back() = row.measured;
      many.errors[i] = row.error;
    }
  }
  return comparison;
}

std::string many_text(const ManyComparison& comparison, const TextStyle& style) {
  std::string text;
  for (const Aspect aspect : {Aspect::total, Aspect::memory, Aspect::time, Aspect::traffic})
    text += aspect_table(comparison, aspect, style);
  for (std::size_t i = 0; i < comparison.pairs.size(); ++i)
    for (const WorstRow& worst : comparison.pairs[i].worst)
      if (worst.error != 0) text += blame_line(worst, comparison.columns[i]);
  return text;
}

std::string many_json(const ManyComparison& comparison) {
  Json rows = Json::array();
  for (const ManyRow& row : comparison.rows) {
    const Json values = numbers(row.values), errors = numbers(row.errors);
    rows.push_back({{"quantity", row.quantity},
                    {"predicted", values.front()},
                    {"simulated", nullptr},
                    {"measured", values.back()},
                    {"error", errors.front()},
                    {"aspect", name_of(row.aspect)},
                    {"unit", name_of(row.unit)},
                    {"values", values},
                    {"errors", errors}});
  }
  Json worst = Json::object();
  for (const WorstRow& row : comparison.pairs.front().worst)
    worst[std::string(name_of(row.aspect))] = {{"quantity", row.quantity}, {"error", row.error}};
  const Json document = {
      {"schema", "reckon.comparison/1"}, {"rows", rows}, {"worst", worst}, {"columns", comparison.columns}};
  return document_text(document);
}

}  // namespace reckon
