// Plain text tables for a terminal: aligned columns, optional colour, small bars.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// How text may be dressed up: colour and block characters go to a terminal only.
struct TextStyle {
  bool colour = false;
  bool bars = false;
};

enum class Paint { plain, bold, dim, good, warning, bad };

std::string painted(std::string_view text, Paint paint, const TextStyle& style);

/// A bar of up to `width` cells for `share` in 0..1; empty when the style has no bars.
std::string bar(double share, int width, const TextStyle& style);

/// Words of `text` in lines of at most 80 columns, the following lines indented by two.
std::string wrapped(const std::string& text);

struct Cell {
  std::string text;
  Paint paint = Paint::plain;

  Cell(std::string cell_text, Paint cell_paint = Paint::plain) : text(std::move(cell_text)), paint(cell_paint) {}
  Cell(const char* cell_text) : text(cell_text) {}
};

/// Rows of cells under a header. The first column is aligned left, all others right, texts marked in `left` left.
class Table {
 public:
  explicit Table(std::vector<std::string> header, std::vector<bool> left = {});

  void add(std::vector<Cell> row);
  std::string text(const TextStyle& style) const;

 private:
  bool aligned_left(std::size_t column) const;

  std::vector<std::string> header_;
  std::vector<bool> left_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace reckon
