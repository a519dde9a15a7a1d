// A CSV file (RFC 4180: quoted cells, doubled quotes, line breaks inside quotes) as rows of text, columns by name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

class CsvTable {
 public:
  /// Throws ConfigError for an unreadable file, an empty one, or a row that is longer than the header (with its line).
  static CsvTable read(const std::filesystem::path& file);
  static CsvTable parse(std::string_view text, const std::string& file_name);

  std::size_t rows() const { return cells_.size(); }
  bool has_column(const std::string& column) const { return columns_.count(column) > 0; }
  /// Cell without surrounding blanks; empty for a missing column or a short row.
  const std::string& cell(std::size_t row, const std::string& column) const;
  std::optional<double> number(std::size_t row, const std::string& column) const;
  std::optional<std::int64_t> count(std::size_t row, const std::string& column) const;

  /// Writes `value` into the empty cells of `column`, making the column if need be.
  void fill(const std::string& column, const std::string& value);
  /// Replaces every cell of `column` that equals `old_value`.
  void map(const std::string& column, const std::string& old_value, const std::string& new_value);

 private:
  std::map<std::string, std::size_t> columns_;
  std::vector<std::vector<std::string>> cells_;
};

}  // namespace reckon
