// YAML (and so JSON) text as a plain tree in which every node knows its place. The rest of the project sees only this
// tree, never the YAML library.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

struct YamlEntry;

struct YamlValue {
  enum class Kind { null, scalar, sequence, mapping };

  Kind kind = Kind::null;
  std::string text;     // scalar: as written, without quotes
  bool quoted = false;  // scalar: "1" is text, 1 a number
  bool flow = false;    // writing: [a, b] and {a: 1} on one line
  int line = 0, column = 0;
  std::vector<YamlValue> items;    // sequence
  std::vector<YamlEntry> entries;  // mapping, in file order, duplicates kept

  static YamlValue scalar(std::string text);
  static YamlValue quoted_scalar(std::string text);
  static YamlValue sequence(std::vector<YamlValue> items);  // written on one line
  static YamlValue mapping();

  /// Value of the first entry with that key, or null pointer.
  const YamlValue* find(std::string_view key) const;
  /// Appends an entry and returns its value.
  YamlValue& add(std::string key, YamlValue value);
};

struct YamlEntry {
  std::string key;
  int line = 0, column = 0;
  YamlValue value;
};

/// What is wrong with a text that would command the terminal it is printed on ("\\e[2J"); empty = nothing.
std::string unprintable(std::string_view text);

/// "a mapping", "a list", "nothing", "'text'": for messages.
std::string describe(const YamlValue& value);

/// One document. Throws ConfigError with file, line and column on bad syntax, invalid UTF-8, nesting below 64 levels or
/// aliases that expand to more than a million nodes.
YamlValue parse_yaml(std::string_view text, const std::string& file_name);

/// The content of a text file; throws ConfigError for what is missing, a directory, unreadable, or above 64 MiB.
std::string read_text_file(const std::filesystem::path& file);

/// Block style, two spaces; nodes marked `flow` on one line; strings quoted where they must be.
std::string write_yaml(const YamlValue& document);

}  // namespace reckon
