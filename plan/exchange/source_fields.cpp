#include "plan/exchange/source_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "plan/parse_quantity.h"
#include "plan/yaml_reader.h"

namespace reckon {

namespace {

constexpr const char* kEmpty = "empty";
constexpr const char* kAgain = "given again below";
constexpr std::int64_t kMost = std::int64_t{1} << 31;  // of anything that is counted in a launch file

void flatten(const YamlValue& value, const std::string& path, int line, int column, std::vector<SourceField>& fields) {
  if (value.kind != YamlValue::Kind::mapping) {
    fields.push_back({path, value, line, column});
    return;
  }
  for (const YamlEntry& entry : value.entries)
    flatten(entry.value, path.empty() ? entry.key : path + "." + entry.key, entry.line, entry.column, fields);
}

char folded(char letter) {
  return letter == '_' ? '-' : letter;
}

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return folded(x) == folded(y); });
}

bool is_empty(const YamlValue& value) {
  return value.kind == YamlValue::Kind::null ||
         (value.kind == YamlValue::Kind::scalar &&
          (value.text.empty() || value.text == "null" || value.text == "None" || value.text == "~"));
}

/// For lists: short enough for one line of a message.
std::string shown(const YamlValue& value) {
  if (value.kind == YamlValue::Kind::scalar)
    return value.text.size() > 60 ? value.text.substr(0, 57) + "..." : value.text;
  if (value.kind == YamlValue::Kind::sequence && !value.items.empty() && value.items.size() <= 8) {
    std::string text;
    for (const YamlValue& item : value.items) text += (text.empty() ? "" : ", ") + shown(item);
    return "[" + text + "]";
  }
  return value.kind == YamlValue::Kind::null ? "" : describe(value);
}

std::optional<double> as_number(const YamlValue& value) {
  if (value.kind != YamlValue::Kind::scalar) return std::nullopt;
  try {
    return parse_number(value.text);
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

std::string lower(std::string text) {
  for (char& letter : text)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return text;
}

std::optional<bool> as_flag(const YamlValue& value) {
  const std::string text = lower(value.text);
  if (value.kind != YamlValue::Kind::scalar) return std::nullopt;
  if (text == "true" || text == "yes" || text == "1" || text == "on") return true;
  if (text == "false" || text == "no" || text == "0" || text == "off") return false;
  return std::nullopt;
}

YamlValue& entry_of(YamlValue& mapping, std::string_view path) {
  const std::size_t dot = path.find('.');
  const std::string name(path.substr(0, dot));
  const auto found = std::find_if(mapping.entries.begin(), mapping.entries.end(),
                                  [&](const YamlEntry& entry) { return entry.key == name; });
  YamlValue& child = found == mapping.entries.end() ? mapping.add(name, YamlValue()) : found->value;
  if (dot == std::string_view::npos) return child;
  if (child.kind != YamlValue::Kind::mapping) child = YamlValue::mapping();
  return entry_of(child, path.substr(dot + 1));
}

}  // namespace

std::vector<SourceField> flattened(const YamlValue& document) {
  std::vector<SourceField> fields;
  flatten(document, "", document.line, document.column, fields);
  return fields;
}

SourceFields::SourceFields(std::vector<SourceField> fields, ForeignPlan& plan)
    : fields_(std::move(fields)), plan_(plan) {}

const SourceField* SourceFields::look_up(std::string_view name) const {
  const SourceField* last = nullptr;  // argument parsers and JSON readers alike take the last of several
  for (const SourceField& field : fields_)
    if (same_name(field.key, name) && !is_empty(field.value)) last = &field;
  return last;
}

void SourceFields::put(std::string_view name, std::vector<ForeignField>& list, std::string_view plan_key,
                       const std::string& note) {
  const SourceField* last = look_up(name);
  int times = 0;
  for (SourceField& field : fields_) {
    if (field.listed || !same_name(field.key, name)) continue;
    field.listed = true;
    if (&field == last) {
      list.push_back({field.key, shown(field.value), field.line, std::string(plan_key), note});
    } else {
      plan_.ignored.push_back({field.key, shown(field.value), field.line, {}, is_empty(field.value) ? kEmpty : kAgain});
    }
    if (!is_empty(field.value)) ++times;
  }
  if (times > 1) warn(fmt::format("{} is given {} times; the last one counts", called(name), times));
}

void SourceFields::use(std::string_view name, std::string_view plan_key, const std::string& note) {
  put(name, plan_.used, plan_key, note);
}

bool SourceFields::is_auto(std::string_view name) const {
  const SourceField* field = look_up(name);
  return field != nullptr && is_open(*field);
}

SourceField* SourceFields::take(Names names, std::string_view plan_key, const std::string& note) {
  const SourceField* found = nullptr;
  for (const std::string_view name : names) {
    const SourceField* field = look_up(name);
    if (field == nullptr) continue;
    if (found != nullptr) {
      put(name, plan_.ignored, {}, found->key + " decides");
    } else if (is_open(*field)) {
      put(name, plan_.assumed, plan_key, "filled in by the trainer; the plan keeps its default unless you say");
      return nullptr;
    } else {
      found = field;
      put(name, plan_.used, plan_key, note);
    }
  }
  if (found == nullptr) return nullptr;
  return &fields_[static_cast<std::size_t>(found - fields_.data())];
}

bool SourceFields::is_open(const SourceField& field) const {
  return field.value.text == "auto" && plan_.kind != ForeignKind::megatron;
}

bool SourceFields::take_open(Names names, std::string_view plan_key, const std::string& otherwise) {
  for (const std::string_view name : names) {
    const SourceField* field = look_up(name);
    if (field == nullptr) continue;
    if (!is_open(*field)) return false;
    fill_in(name, plan_key, otherwise, "filled in by the trainer");
    return true;
  }
  return false;
}

void SourceFields::fill_in(std::string_view name, std::string_view plan_key, std::string_view value,
                           std::string_view why) {
  put(name, plan_.assumed, plan_key, fmt::format("{}; {} is taken", why, value));
}

std::optional<std::int64_t> SourceFields::count(Names names, std::string_view plan_key, const std::string& note) {
  const SourceField* field = take(names, plan_key, note);
  if (field == nullptr) return std::nullopt;
  const std::optional<double> number = as_number(field->value);
  if (number && std::floor(*number) == *number && std::abs(*number) <= static_cast<double>(kMost))
    return static_cast<std::int64_t>(*number);
  wrong(field->key, fmt::format("{} is {}; a whole number up to 2^31 is needed", field->key, describe(field->value)));
  return std::nullopt;
}

std::optional<double> SourceFields::number(Names names, std::string_view plan_key, const std::string& note) {
  const SourceField* field = take(names, plan_key, note);
  if (field == nullptr) return std::nullopt;
  if (const std::optional<double> number = as_number(field->value)) return number;
  wrong(field->key, fmt::format("{} is {}; a number is needed", field->key, describe(field->value)));
  return std::nullopt;
}

std::optional<bool> SourceFields::flag(Names names, std::string_view plan_key, const std::string& note) {
  const SourceField* field = take(names, plan_key, note);
  if (field == nullptr) return std::nullopt;
  if (const std::optional<bool> flag = as_flag(field->value)) return flag;
  wrong(field->key, fmt::format("{} is {}; true or false is needed", field->key, describe(field->value)));
  return std::nullopt;
}

std::optional<std::string> SourceFields::text(Names names, std::string_view plan_key, const std::string& note) {
  const SourceField* field = take(names, plan_key, note);
  if (field == nullptr) return std::nullopt;
  if (field->value.kind == YamlValue::Kind::scalar) return field->value.text;
  wrong(field->key, fmt::format("{} is {}; a word is needed", field->key, describe(field->value)));
  return std::nullopt;
}

std::int64_t SourceFields::count_or(Names names, std::string_view plan_key, std::int64_t otherwise,
                                    const std::string& note) {
  if (take_open(names, plan_key, fmt::format("{}", otherwise))) return otherwise;
  if (const auto value = count(names, plan_key)) return *value;
  note_default(*names.begin(), fmt::format("{}", otherwise), plan_key, note);
  return otherwise;
}

double SourceFields::number_or(Names names, std::string_view plan_key, double otherwise, const std::string& note) {
  if (take_open(names, plan_key, write_number(otherwise))) return otherwise;
  if (const auto value = number(names, plan_key)) return *value;
  note_default(*names.begin(), write_number(otherwise), plan_key, note);
  return otherwise;
}

bool SourceFields::flag_or(Names names, std::string_view plan_key, bool otherwise, const std::string& note) {
  if (take_open(names, plan_key, otherwise ? "true" : "false")) return otherwise;
  if (const auto value = flag(names, plan_key)) return *value;
  note_default(*names.begin(), otherwise ? "true" : "false", plan_key, note);
  return otherwise;
}

std::string SourceFields::text_or(Names names, std::string_view plan_key, std::string otherwise,
                                  const std::string& note) {
  if (take_open(names, plan_key, otherwise)) return otherwise;
  if (const auto value = text(names, plan_key)) return *value;
  note_default(*names.begin(), otherwise, plan_key, note);
  return otherwise;
}

void SourceFields::put_all(std::string_view start, bool whole_name, std::vector<ForeignField>& list,
                           std::string_view note) {
  for (SourceField& field : fields_) {
    const std::string_view part = std::string_view(field.key).substr(0, whole_name ? field.key.size() : start.size());
    if (field.listed || !same_name(part, start)) continue;
    field.listed = true;
    list.push_back({field.key, shown(field.value), field.line, {}, std::string(note)});
  }
}

void SourceFields::ignore(Names names, std::string_view why) {
  for (const std::string_view name : names) put_all(name, true, plan_.ignored, why);
}

void SourceFields::ignore_below(std::string_view start, std::string_view why) {
  put_all(start, false, plan_.ignored, why);
}

void SourceFields::not_modelled(Names names, std::string_view effect) {
  for (const std::string_view name : names) put_all(name, true, plan_.not_modelled, effect);
}

void SourceFields::not_modelled_below(std::string_view start, std::string_view effect) {
  put_all(start, false, plan_.not_modelled, effect);
}

void SourceFields::note_default_not_modelled(std::string_view name, std::string value, std::string_view effect) {
  plan_.not_modelled.push_back({std::string(name), std::move(value), 0, {}, std::string(effect)});
}

/// Also takes back that the field was used.
void SourceFields::not_understood(std::string_view name, const std::string& why) {
  const SourceField* field = look_up(name);
  if (field == nullptr) return;
  std::erase_if(plan_.used, [&](const ForeignField& one) { return one.key == field->key; });
  fields_[static_cast<std::size_t>(field - fields_.data())].listed = false;
  put(name, plan_.not_understood, {}, why);
}

void SourceFields::note_default(std::string_view name, std::string value, std::string_view plan_key,
                                const std::string& note) {
  plan_.defaults.push_back({std::string(name), std::move(value), 0, std::string(plan_key), note});
}

void SourceFields::assume(std::string_view plan_key, std::string value, const std::string& note) {
  plan_.assumed.push_back({{}, std::move(value), 0, std::string(plan_key), note});
}

void SourceFields::set(std::string_view plan_key, YamlValue value) {
  entry_of(plan_.plan, plan_key) = std::move(value);
}
void SourceFields::set(std::string_view plan_key, std::int64_t value) {
  set(plan_key, to_yaml(value));
}
void SourceFields::set(std::string_view plan_key, double value) {
  set(plan_key, to_yaml(value));
}
void SourceFields::set(std::string_view plan_key, bool value) {
  set(plan_key, to_yaml(value));
}
void SourceFields::set(std::string_view plan_key, std::string_view value) {
  set(plan_key, to_yaml(std::string(value)));
}

Diagnostic SourceFields::at(std::string_view name, std::string message) const {
  const SourceField* field = look_up(name);
  if (field == nullptr) return {std::move(message), plan_.file, 0, 0, std::string(name)};
  return {std::move(message), plan_.file, field->line, field->column, field->key};
}

void SourceFields::wrong(std::string_view name, std::string message) {
  wrong_.push_back(at(name, std::move(message)));
}

void SourceFields::contradiction(std::string_view name, std::string message) {
  contradictions_.push_back(at(name, std::move(message)));
}

std::string SourceFields::called(std::string_view name) const {
  const SourceField* field = look_up(name);
  return field == nullptr ? std::string(name) : fmt::format("{} (line {})", field->key, field->line);
}

void SourceFields::finish() {
  for (SourceField& field : fields_) {
    if (field.listed) continue;
    field.listed = true;
    const bool empty = is_empty(field.value);
    (empty ? plan_.ignored : plan_.not_understood)
        .push_back({field.key, shown(field.value), field.line, {}, empty ? kEmpty : ""});
  }
  if (!wrong_.empty()) throw ConfigError(wrong_);
  if (!contradictions_.empty()) throw RuleError(contradictions_);
}

std::int64_t product_of(std::initializer_list<std::int64_t> degrees) {
  double product = 1;
  for (const std::int64_t degree : degrees) product *= static_cast<double>(degree);
  return static_cast<std::int64_t>(std::min(product, 0x1p40));
}

}  // namespace reckon
