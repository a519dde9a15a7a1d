// JSON documents: writing them, and reading what someone else may have written: every access is checked, and an error
// names the file and the path of the value ("stages[1].memory.parameters").
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace reckon {

using Json = nlohmann::ordered_json;  // keys stay in the order they are written

/// A document as the program writes it. Bytes that are no UTF-8 (a file may have any name) are replaced by U+FFFD.
std::string document_text(const Json& document);

/// The document, or nothing when it nests deeper than 100 levels (writing it would exhaust the stack). Throws
/// Json::parse_error, or Json::out_of_range for a number beyond a double.
std::optional<Json> parse_shallow_json(const std::string& text);

/// The document in `file`. Throws ConfigError with line and column when it is missing, larger than 64 MiB or no JSON.
Json read_json(const std::filesystem::path& file);

/// A value inside a document, with its place for messages. The document must outlive it.
class CheckedJson {
 public:
  CheckedJson(const Json& value, std::string file, std::string place = {})
      : value_(&value), file_(std::move(file)), place_(std::move(place)) {}

  bool has(const char* key) const;
  CheckedJson at(const char* key) const;  // required member of an object
  std::vector<CheckedJson> list() const;  // elements of an array
  std::string text() const;
  bool boolean() const;
  std::int64_t integer() const;  // exact, within 64 bits
  double number() const;         // finite, or NaN for null
  const Json& json() const { return *value_; }
  const std::string& file() const { return file_; }

  /// Throws ConfigError: "FILE: PLACE `found`, but `expected`".
  [[noreturn]] void fail(const std::string& expected) const;

 private:
  const Json* value_;
  std::string file_, place_;
};

}  // namespace reckon
