#include "report/table.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace reckon {

namespace {

constexpr std::size_t kLineWidth = 80;

/// Columns on screen of UTF-8 text: bytes that continue a character take none.
std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string_view escape_code(Paint paint) {
  switch (paint) {
    case Paint::plain: return "";
    case Paint::bold: return "\x1b[1m";
    case Paint::dim: return "\x1b[2m";
    case Paint::good: return "\x1b[32m";
    case Paint::warning: return "\x1b[33m";
    case Paint::bad: return "\x1b[31m";
  }
  return "";
}

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string painted(std::string_view text, Paint paint, const TextStyle& style) {
  if (!style.colour || paint == Paint::plain) return std::string(text);
  return std::string(escape_code(paint)) + std::string(text) + "\x1b[0m";
}

std::string bar(double share, int width, const TextStyle& style) {
  if (!style.bars || !(share > 0)) return "";
  static constexpr std::string_view kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = static_cast<int>(std::lround(std::min(share, 1.0) * width * 8));
  std::string text;
  for (int i = 0; i < eighths / 8; ++i) text += "█";
  return text + std::string(kEighths[eighths % 8]);
}

std::string wrapped(const std::string& text) {
  std::string lines;
  std::size_t column = 0;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const bool first = lines.empty();
    const bool fits = column + 1 + word.size() <= kLineWidth;
    lines += first ? word : fits ? " " + word : "\n  " + word;
    column = first ? word.size() : fits ? column + 1 + word.size() : 2 + word.size();
  }
  return lines;
}

Table::Table(std::vector<std::string> header, std::vector<bool> left)
    : header_(std::move(header)), left_(std::move(left)) {}

void Table::add(std::vector<Cell> row) {
  row.resize(header_.size(), Cell(""));
  rows_.push_back(std::move(row));
}

bool Table::aligned_left(std::size_t column) const {
  return column == 0 || (column < left_.size() && left_[column]);
}

std::string Table::text(const TextStyle& style) const {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < header_.size(); ++column) {
    std::size_t width = display_width(header_[column]);
    for (const auto& row : rows_) width = std::max(width, display_width(row[column].text));
    widths.push_back(width);
  }
  const auto line = [&](const std::vector<Cell>& row) {
    std::string text;
    for (std::size_t column = 0; column < row.size(); ++column) {
      const std::string padding(widths[column] - display_width(row[column].text), ' ');
      const std::string cell = painted(row[column].text, row[column].paint, style);
      text += (column == 0 ? "" : "  ") + (aligned_left(column) ? cell + padding : padding + cell);
    }
    return without_trailing_spaces(text) + "\n";
  };
  std::vector<Cell> header;
  for (const std::string& title : header_) header.emplace_back(title, Paint::dim);
  std::string text = line(header);
  for (const auto& row : rows_) text += line(row);
  return text;
}

}  // namespace reckon
