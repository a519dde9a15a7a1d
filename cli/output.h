// Where a command's words go: results on stdout, everything else on stderr; with --json one document on stdout only.
#pragma once

#include <string>
#include <string_view>

#include "report/table.h"

namespace reckon {

enum class ColourChoice { automatic, always, never };

class Output {
 public:
  Output(bool json, ColourChoice colour);

  bool json() const { return json_; }
  /// Style of text on stdout: colour only on a terminal without NO_COLOR, unless --color says otherwise.
  const TextStyle& style() const { return style_; }

  void result(std::string_view text) const;  // stdout, flushed; throws RunError when stdout cannot take it
  void note(std::string_view text) const;    // stderr, one line
  void warning(std::string_view text) const;

 private:
  bool json_;
  TextStyle style_;
};

}  // namespace reckon
