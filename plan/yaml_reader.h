// Strict reading of a YAML mapping: every key is asked for by name and type, what is wrong is collected with file,
// line, column and key, and finish() names the keys that nobody asked for with the nearest known name.
//
//   YamlReader reader(document, file, errors);
//   reader.require("layers", model.layers);
//   reader.read("rope_theta", model.rope_theta);
//   if (auto moe = reader.child("moe")) { moe->require("experts", model.moe.experts); moe->finish(); }
//   reader.finish();
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/choices.h"
#include "plan/errors.h"
#include "plan/number_format.h"
#include "plan/units.h"
#include "plan/yaml_document.h"

namespace reckon {

/// Converts one value; throws ConfigError with a sentence and the value's place (file and key are the reader's).
void from_yaml(const YamlValue& value, std::int64_t& target);
void from_yaml(const YamlValue& value, std::uint64_t& target);
void from_yaml(const YamlValue& value, int& target);
void from_yaml(const YamlValue& value, double& target);  // finite
void from_yaml(const YamlValue& value, bool& target);
void from_yaml(const YamlValue& value, std::string& target);
void from_yaml(const YamlValue& value, Bytes& target);
void from_yaml(const YamlValue& value, Seconds& target);
void from_yaml(const YamlValue& value, BytesPerSecond& target);
void from_yaml(const YamlValue& value, FlopsPerSecond& target);
void from_yaml(const YamlValue& value, NumberFormat& target);

/// Throws ConfigError at the place of `value`.
[[noreturn]] void refuse(const YamlValue& value, std::string message);
/// "'fulll' is not one of none, selective, full; did you mean full?"
[[noreturn]] void refuse_choice(const YamlValue& value, const std::vector<std::string>& known);

template <HasChoices Enum>
void from_yaml(const YamlValue& value, Enum& target) {
  std::vector<std::string> names;
  for (const Choice<Enum>& choice : choices(Enum{})) {
    if (value.kind == YamlValue::Kind::scalar && value.text == choice.name) {
      target = choice.value;
      return;
    }
    names.emplace_back(choice.name);
  }
  refuse_choice(value, names);
}

template <class T>
void from_yaml(const YamlValue& value, std::vector<T>& target) {
  if (value.kind != YamlValue::Kind::sequence) refuse(value, "a list [a, b, ...] is needed, found " + describe(value));
  std::vector<T> items;
  for (const YamlValue& item : value.items) from_yaml(item, items.emplace_back());
  target = std::move(items);
}

YamlValue to_yaml(std::int64_t value);
YamlValue to_yaml(std::uint64_t value);
YamlValue to_yaml(int value);
YamlValue to_yaml(double value);
YamlValue to_yaml(bool value);
YamlValue to_yaml(const std::string& value);
YamlValue to_yaml(Bytes value);
YamlValue to_yaml(Seconds value);
YamlValue to_yaml(BytesPerSecond value);
YamlValue to_yaml(FlopsPerSecond value);
YamlValue to_yaml(NumberFormat value);

template <HasChoices Enum>
YamlValue to_yaml(Enum value) {
  return YamlValue::scalar(std::string(name_of(value)));
}

template <class T>
YamlValue to_yaml(const std::vector<T>& values) {
  std::vector<YamlValue> items;
  for (const T& value : values) items.push_back(to_yaml(value));
  return YamlValue::sequence(std::move(items));
}

class YamlReader {
 public:
  /// `path` is the dotted key of the mapping itself, empty for a whole file. Document, file and errors must outlive it.
  YamlReader(const YamlValue& mapping, const std::string& file, std::vector<Diagnostic>& errors, std::string path = {});

  /// Reads `key` into `target` if it is there; a wrong value becomes an error. Returns whether the value was read.
  template <class T>
  bool read(std::string_view key, T& target) {
    const YamlValue* found = value(key);
    if (found == nullptr) return false;
    try {
      from_yaml(*found, target);
      return true;
    } catch (const ConfigError& problem) {
      add(problem, *found, key);
      return false;
    }
  }

  /// As read; a missing key is an error.
  template <class T>
  bool require(std::string_view key, T& target) {
    if (value(key) == nullptr) {
      missing(key);
      return false;
    }
    return read(key, target);
  }

  /// The raw value of `key`, null pointer if absent; the key counts as known from now on.
  const YamlValue* value(std::string_view key);
  bool has(std::string_view key) { return value(key) != nullptr; }
  /// The mapping under `key`; empty if absent or (an error) not a mapping.
  std::optional<YamlReader> child(std::string_view key);
  /// The mappings of the list under `key`; anything else is an error.
  std::vector<YamlReader> children(std::string_view key);
  /// All keys of the mapping, in file order.
  std::vector<std::string> keys() const;

  /// Adds an error at the place of `key` (of the mapping, when the key is absent).
  void error(std::string_view key, std::string message);
  /// Every key not asked for is an error that names the nearest known one; a key given twice as well.
  void finish();

 private:
  void add(const ConfigError& problem, const YamlValue& at, std::string_view key);
  void missing(std::string_view key);
  std::string full_key(std::string_view key) const;

  const YamlValue* mapping_;
  const std::string* file_;
  std::vector<Diagnostic>* errors_;
  std::string path_;
  std::vector<std::string> known_;
};

/// "unknown key 'tensr'; did you mean 'tensor'?" or the list of known keys when none is near.
std::string unknown_key(std::string_view key, const std::vector<std::string>& known);

}  // namespace reckon
