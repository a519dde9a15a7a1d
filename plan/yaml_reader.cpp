#include "plan/yaml_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "plan/nearest_name.h"
#include "plan/parse_quantity.h"

namespace reckon {

namespace {

/// Text of a scalar that must not be quoted text, such as a number.
const std::string& plain_text(const YamlValue& value, std::string_view what) {
  if (value.kind != YamlValue::Kind::scalar)
    refuse(value, fmt::format("{} is needed, found {}", what, describe(value)));
  if (value.quoted) refuse(value, fmt::format("{} is needed, found the quoted text {}", what, describe(value)));
  return value.text;
}

const std::string& any_text(const YamlValue& value, std::string_view what) {
  if (value.kind != YamlValue::Kind::scalar)
    refuse(value, fmt::format("{} is needed, found {}", what, describe(value)));
  return value.text;
}

/// Runs a parser that knows no place and adds the place of `value` to what it throws.
template <class Parse>
auto at_place_of(const YamlValue& value, Parse parse) {
  try {
    return parse();
  } catch (const ConfigError& problem) {
    refuse(value, problem.diagnostics().front().message);
  }
}

}  // namespace

void refuse(const YamlValue& value, std::string message) {
  throw ConfigError({{std::move(message), {}, value.line, value.column, {}}});
}

void refuse_choice(const YamlValue& value, const std::vector<std::string>& known) {
  std::string message = fmt::format("{} is not one of {}", describe(value), fmt::join(known, ", "));
  const std::string nearest = nearest_name(value.text, known);
  if (!nearest.empty()) message += fmt::format("; did you mean '{}'?", nearest);
  refuse(value, message);
}

void from_yaml(const YamlValue& value, std::int64_t& target) {
  const std::string& text = plain_text(value, "a whole number");
  target = at_place_of(value, [&] { return parse_count(text); });
}

void from_yaml(const YamlValue& value, std::uint64_t& target) {
  std::int64_t number = 0;
  from_yaml(value, number);
  if (number < 0) refuse(value, fmt::format("{} is negative; 0 or more is needed", number));
  target = static_cast<std::uint64_t>(number);
}

void from_yaml(const YamlValue& value, int& target) {
  std::int64_t number = 0;
  from_yaml(value, number);
  if (number < std::numeric_limits<int>::min() || number > std::numeric_limits<int>::max()) {
    refuse(value, fmt::format("{} is too large", number));
  }
  target = static_cast<int>(number);
}

void from_yaml(const YamlValue& value, double& target) {
  const std::string& text = plain_text(value, "a number");
  target = at_place_of(value, [&] { return parse_number(text); });
}

void from_yaml(const YamlValue& value, bool& target) {
  const std::string& text = plain_text(value, "true or false");
  const bool yes = text == "true" || text == "True" || text == "TRUE";
  const bool no = text == "false" || text == "False" || text == "FALSE";
  if (!yes && !no) refuse(value, fmt::format("true or false is needed, found {}", describe(value)));
  target = yes;
}

void from_yaml(const YamlValue& value, std::string& target) {
  target = any_text(value, "a text");
}

void from_yaml(const YamlValue& value, Bytes& target) {
  const std::string& text = any_text(value, "a size such as 80GiB");
  target = at_place_of(value, [&] { return parse_bytes(text); });
}

void from_yaml(const YamlValue& value, Seconds& target) {
  const std::string& text = any_text(value, "a time such as 25us");
  target = at_place_of(value, [&] { return parse_seconds(text); });
}

void from_yaml(const YamlValue& value, BytesPerSecond& target) {
  const std::string& text = any_text(value, "a bandwidth such as 900 GB/s");
  target = at_place_of(value, [&] { return parse_bytes_per_second(text); });
}

void from_yaml(const YamlValue& value, FlopsPerSecond& target) {
  const std::string& text = any_text(value, "a compute rate such as 312 TFLOP/s");
  target = at_place_of(value, [&] { return parse_flops_per_second(text); });
}

void from_yaml(const YamlValue& value, NumberFormat& target) {
  const std::string& text = any_text(value, "a number format such as bf16");
  if (const std::optional<NumberFormat> format = number_format(text)) {
    target = *format;
    return;
  }
  std::vector<std::string> names;
  for (const NumberFormat format : all_number_formats()) names.emplace_back(name_of(format));
  refuse_choice(value, names);
}

YamlValue to_yaml(std::int64_t value) {
  return YamlValue::scalar(fmt::format("{}", value));
}
YamlValue to_yaml(std::uint64_t value) {
  return YamlValue::scalar(fmt::format("{}", value));
}
YamlValue to_yaml(int value) {
  return YamlValue::scalar(fmt::format("{}", value));
}
YamlValue to_yaml(double value) {
  return YamlValue::scalar(write_number(value));
}
YamlValue to_yaml(bool value) {
  return YamlValue::scalar(value ? "true" : "false");
}
YamlValue to_yaml(const std::string& value) {
  return YamlValue::scalar(value);
}
YamlValue to_yaml(Bytes value) {
  return YamlValue::scalar(write_bytes(value));
}
YamlValue to_yaml(Seconds value) {
  return YamlValue::scalar(write_seconds(value));
}
YamlValue to_yaml(BytesPerSecond value) {
  return YamlValue::scalar(write_bytes_per_second(value));
}
YamlValue to_yaml(FlopsPerSecond value) {
  return YamlValue::scalar(write_flops_per_second(value));
}
YamlValue to_yaml(NumberFormat value) {
  return YamlValue::scalar(std::string(name_of(value)));
}

std::string unknown_key(std::string_view key, const std::vector<std::string>& known) {
  YamlValue shown = YamlValue::scalar(std::string(key));
  const std::string nearest = nearest_name(key, known);
  if (!nearest.empty()) return fmt::format("unknown key {}; did you mean '{}'?", describe(shown), nearest);
  if (known.empty()) return fmt::format("unknown key {}; no key is expected here", describe(shown));
  return fmt::format("unknown key {}; known here: {}", describe(shown), fmt::join(known, ", "));
}

YamlReader::YamlReader(const YamlValue& mapping, const std::string& file, std::vector<Diagnostic>& errors,
                       std::string path)
    : mapping_(&mapping), file_(&file), errors_(&errors), path_(std::move(path)) {
  if (mapping.kind != YamlValue::Kind::mapping) {
    errors_->push_back({"keys with values (key: value) are needed, found " + describe(mapping), file, mapping.line,
                        mapping.column, path_});
  }
}

const YamlValue* YamlReader::value(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  return mapping_->find(key);
}

std::optional<YamlReader> YamlReader::child(std::string_view key) {
  const YamlValue* found = value(key);
  if (found == nullptr) return std::nullopt;
  if (found->kind != YamlValue::Kind::mapping) {
    error(key, "keys with values (key: value) are needed, found " + describe(*found));
    return std::nullopt;
  }
  return YamlReader(*found, *file_, *errors_, full_key(key));
}

std::vector<YamlReader> YamlReader::children(std::string_view key) {
  std::vector<YamlReader> readers;
  const YamlValue* found = value(key);
  if (found == nullptr) return readers;
  if (found->kind != YamlValue::Kind::sequence) error(key, "a list is needed, found " + describe(*found));
  for (const YamlValue& item : found->items) {
    const std::string path = fmt::format("{}[{}]", full_key(key), readers.size());
    readers.emplace_back(item, *file_, *errors_, path);
  }
  return readers;
}

std::vector<std::string> YamlReader::keys() const {
  std::vector<std::string> names;
  for (const YamlEntry& entry : mapping_->entries) names.push_back(entry.key);
  return names;
}

void YamlReader::error(std::string_view key, std::string message) {
  const YamlValue* found = mapping_->find(key);
  const YamlValue& at = found != nullptr ? *found : *mapping_;
  errors_->push_back({std::move(message), *file_, at.line, at.column, full_key(key)});
}

void YamlReader::finish() {
  for (std::size_t i = 0; i < mapping_->entries.size(); ++i) {
    const YamlEntry& entry = mapping_->entries[i];
    const std::string key = full_key(entry.key);
    if (std::find(known_.begin(), known_.end(), entry.key) == known_.end()) {
      errors_->push_back({unknown_key(entry.key, known_), *file_, entry.line, entry.column, key});
    } else if (mapping_->find(entry.key) != &entry.value) {
      errors_->push_back(
          {fmt::format("the key '{}' is given twice", entry.key), *file_, entry.line, entry.column, key});
    }
  }
}

void YamlReader::add(const ConfigError& problem, const YamlValue& at, std::string_view key) {
  for (Diagnostic diagnostic : problem.diagnostics()) {
    if (diagnostic.line == 0) diagnostic.line = at.line, diagnostic.column = at.column;
    if (diagnostic.file.empty()) diagnostic.file = *file_;
    if (diagnostic.key.empty()) diagnostic.key = full_key(key);
    errors_->push_back(std::move(diagnostic));
  }
}

void YamlReader::missing(std::string_view key) {
  errors_->push_back(
      {fmt::format("the key '{}' is missing", full_key(key)), *file_, mapping_->line, mapping_->column, full_key(key)});
}

std::string YamlReader::full_key(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

}  // namespace reckon
