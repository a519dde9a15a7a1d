#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/format_quantity.h"
#include "report/quantity_cells.h"
#include "report/write_console.h"

namespace reckon {

namespace {

constexpr std::size_t kTimeRowsShown = 14;

/// predicted - measured where both are there, in the row's unit; whole bytes and calls.
std::string difference_text(const ComparisonRow& row) {
  if (!row.predicted || !row.measured || row.unit == Unit::share || row.unit == Unit::rate) return "";
  const double difference = *row.predicted - *row.measured;
  const std::string sign = difference > 0 ? "+" : "";
  if (row.unit == Unit::seconds) return sign + with_unit(Seconds(difference));
  return sign + grouped(static_cast<std::int64_t>(difference)) + (row.unit == Unit::bytes ? " bytes" : "");
}

class ComparisonTable {
 public:
  ComparisonTable(const ProfileComparison& comparison, std::string title) : simulated_(!comparison.columns[1].empty()) {
    header_ = {std::move(title), comparison.columns[0]};
    if (simulated_) header_.push_back(comparison.columns[1]);
    header_.insert(header_.end(), {comparison.columns[2], "spread", "difference", "error"});
  }
  void add(const ComparisonRow& row, std::string name) {
    std::vector<Cell> cells = {std::move(name), value_text(row.predicted, row.unit)};
    if (simulated_) cells.emplace_back(value_text(row.simulated, row.unit));
    cells.emplace_back(value_text(row.measured, row.unit));
    cells.emplace_back(row.spread ? "± " + with_unit(Seconds(*row.spread)) : "");
    cells.emplace_back(difference_text(row));
    cells.push_back(error_cell(row.error, row.predicted && row.measured));
    rows_.push_back(std::move(cells));
  }
  std::string text(const TextStyle& style) const {
    if (rows_.empty()) return "";
    Table table(header_);
    for (const auto& row : rows_) table.add(row);
    return table.text(style) + "\n";
  }

 private:
  bool simulated_;
  std::vector<std::string> header_;
  std::vector<std::vector<Cell>> rows_;
};

double size_of(const ComparisonRow& row) {
  return std::max(row.measured.value_or(0.0), row.predicted.value_or(0.0));
}

void add_to(std::optional<double>& sum, const std::optional<double>& part) {
  if (part) sum = sum.value_or(0.0) + *part;
}

/// The largest components; the small ones together, so that the column still adds up.
std::vector<ComparisonRow> shortened(std::vector<ComparisonRow> rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return size_of(a) > size_of(b); });
  if (rows.size() <= kTimeRowsShown) return rows;
  ComparisonRow rest;
  rest.quantity = fmt::format("time.{} more components", rows.size() - kTimeRowsShown + 1);
  rest.aspect = Aspect::time;
  for (std::size_t i = kTimeRowsShown - 1; i < rows.size(); ++i) {
    add_to(rest.predicted, rows[i].predicted);
    add_to(rest.simulated, rows[i].simulated);
    add_to(rest.measured, rows[i].measured);
  }
  if (rest.predicted && rest.measured && *rest.measured > 0) rest.error = *rest.predicted / *rest.measured - 1;
  rows.resize(kTimeRowsShown - 1);
  rows.push_back(rest);
  return rows;
}

std::vector<ComparisonRow> rows_of(const ProfileComparison& comparison, Aspect aspect) {
  std::vector<ComparisonRow> rows;
  for (const ComparisonRow& row : comparison.rows)
    if (row.aspect == aspect && (row.predicted || row.measured) && size_of(row) > 0) rows.push_back(row);
  return rows;
}

std::string without_prefix(const std::string& quantity) {
  return quantity.substr(quantity.find('.') + 1);
}

}  // namespace

std::string comparison_text(const ProfileComparison& comparison, const TextStyle& style) {
  std::string text;
  for (Aspect aspect : {Aspect::total, Aspect::memory, Aspect::time, Aspect::traffic}) {
    auto rows = rows_of(comparison, aspect);
    if (aspect == Aspect::time) rows = shortened(std::move(rows));
    ComparisonTable table(comparison, std::string(name_of(aspect)));
    for (const ComparisonRow& row : rows)
      table.add(row, aspect == Aspect::total ? row.quantity : without_prefix(row.quantity));
    text += table.text(style);
  }
  if (comparison.losses) text += losses_text(*comparison.losses) + "\n";
  for (const WorstRow& worst : comparison.worst)
    if (worst.error != 0) text += blame_line(worst);
  for (const std::string& remark : comparison.remarks) text += "note: " + remark + "\n";
  return text;
}

}  // namespace reckon
