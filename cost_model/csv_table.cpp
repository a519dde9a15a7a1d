#include "cost_model/csv_table.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "plan/errors.h"
#include "plan/yaml_document.h"

namespace reckon {

namespace {

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// Splits text into records; `line` of a record is where it starts.
struct Record {
  std::vector<std::string> cells;
  int line = 1;
};

std::vector<Record> records(std::string_view text, const std::string& file) {
  std::vector<Record> result;
  Record record;
  std::string cell;
  bool quoted = false;
  int line = 1, quote_line = 1;
  constexpr std::size_t kLongestCell = 4096;
  const auto end_cell = [&] {
    if (cell.size() > kLongestCell)
      throw ConfigError({{fmt::format("a cell has {} characters; at most {} are read", cell.size(), kLongestCell),
                          file,
                          line,
                          0,
                          {}}});
    record.cells.push_back(trimmed(cell));
    cell.clear();
  };
  const auto end_record = [&] {
    end_cell();
    if (record.cells.size() > 1 || !record.cells.front().empty()) result.push_back(std::move(record));
    record = Record{{}, line + 1};
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
        cell += '"';
        ++i;
      } else if (c == '"') {
        quoted = false;
      } else {
        cell += c;
      }
    } else if (c == '"' && trimmed(cell).empty()) {
      quoted = true;
      quote_line = line;
      cell.clear();
    } else if (c == ',') {
      end_cell();
    } else if (c == '\n') {
      end_record();
    } else {
      cell += c;
    }
    if (c == '\n') ++line;
  }
  if (quoted) throw ConfigError({{"a quoted cell is never closed", file, quote_line, 0, {}}});
  if (!cell.empty() || !record.cells.empty()) end_record();
  return result;
}

}  // namespace

CsvTable CsvTable::read(const std::filesystem::path& file) {
  return parse(read_text_file(file), file.string());
}

CsvTable CsvTable::parse(std::string_view text, const std::string& file_name) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  std::vector<Record> all = records(text, file_name);
  if (all.empty())
    throw ConfigError({{"the file is empty; a header line with column names is needed", file_name, 0, 0, {}}});
  CsvTable table;
  const std::vector<std::string>& header = all.front().cells;
  for (std::size_t i = 0; i < header.size(); ++i)
    if (!header[i].empty() && !table.columns_.emplace(header[i], i).second)
      throw ConfigError(
          {{fmt::format("the column '{}' is there twice", header[i]), file_name, all.front().line, 0, {}}});
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i].cells.size() > header.size())
      throw ConfigError({{fmt::format("the row has {} cells, the header {}", all[i].cells.size(), header.size()),
                          file_name,
                          all[i].line,
                          0,
                          {}}});
    table.cells_.push_back(std::move(all[i].cells));
  }
  return table;
}

const std::string& CsvTable::cell(std::size_t row, const std::string& column) const {
  static const std::string empty;
  const auto found = columns_.find(column);
  if (found == columns_.end() || found->second >= cells_.at(row).size()) return empty;
  return cells_[row][found->second];
}

std::optional<double> CsvTable::number(std::size_t row, const std::string& column) const {
  const std::string& text = cell(row, column);
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::optional<std::int64_t> CsvTable::count(std::size_t row, const std::string& column) const {
  const std::optional<double> value = number(row, column);
  if (!value || *value != std::floor(*value) || std::abs(*value) > 9e15) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

void CsvTable::fill(const std::string& column, const std::string& value) {
  const std::size_t index = columns_.emplace(column, columns_.size()).first->second;
  for (std::vector<std::string>& row : cells_) {
    if (row.size() <= index) row.resize(index + 1);
    if (row[index].empty()) row[index] = value;
  }
}

void CsvTable::map(const std::string& column, const std::string& old_value, const std::string& new_value) {
  const auto found = columns_.find(column);
  if (found == columns_.end()) return;
  for (std::vector<std::string>& row : cells_)
    if (found->second < row.size() && row[found->second] == old_value) row[found->second] = new_value;
}

}  // namespace reckon
