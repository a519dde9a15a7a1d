#include "report/plan_json.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "plan/yaml_document.h"

namespace reckon {

namespace {

/// The whole text as a number of that type, or nothing.
template <class Number>
std::optional<Number> number(const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Json scalar_json(const YamlValue& value) {
  return value.quoted ? Json(value.text) : plan_value_json(value.text);
}

/// The way back. A text that would read as something else in YAML was quoted there.
YamlValue yaml_tree(const Json& json) {
  if (json.is_null()) return {};
  if (json.is_string()) {
    const std::string text = json.get<std::string>();
    return plan_value_json(text).is_string() ? YamlValue::scalar(text) : YamlValue::quoted_scalar(text);
  }
  if (json.is_array()) {
    std::vector<YamlValue> items;
    for (const Json& item : json) items.push_back(yaml_tree(item));
    return YamlValue::sequence(std::move(items));
  }
  if (!json.is_object()) return YamlValue::scalar(json.dump());
  YamlValue mapping = YamlValue::mapping();
  for (const auto& [key, value] : json.items()) mapping.add(key, yaml_tree(value));
  return mapping;
}

}  // namespace

Json tree_json(const YamlValue& value) {
  switch (value.kind) {
    case YamlValue::Kind::null: return nullptr;
    case YamlValue::Kind::scalar: return scalar_json(value);
    case YamlValue::Kind::sequence: {
      Json list = Json::array();
      for (const YamlValue& item : value.items) list.push_back(tree_json(item));
      return list;
    }
    case YamlValue::Kind::mapping: break;
  }
  Json object = Json::object();
  for (const YamlEntry& entry : value.entries) object[entry.key] = tree_json(entry.value);
  return object;
}

Json plan_json(const Plan& plan) {
  return tree_json(parse_yaml(write_plan(plan), "the resolved plan"));
}

Plan read_plan_json(const CheckedJson& json, const ConfigPaths& paths) {
  if (!json.json().is_object()) json.fail("a plan was expected");
  return parse_plan(write_yaml(yaml_tree(json.json())), json.file() + " (plan)", {}, paths);
}

Json plan_value_json(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  if (const auto whole = number<std::int64_t>(text)) return *whole;
  if (const auto large = number<std::uint64_t>(text)) return *large;
  if (const auto real = number<double>(text); real && std::isfinite(*real)) return *real;
  return text;
}

Json overrides_json(const std::vector<std::pair<std::string, std::string>>& overrides) {
  Json object = Json::object();
  for (const auto& [key, value] : overrides) object[key] = plan_value_json(value);
  return object;
}

Json nested_overrides_json(const std::vector<std::pair<std::string, std::string>>& overrides) {
  Json object = Json::object();
  for (const auto& [key, value] : overrides) {
    Json* place = &object;
    std::size_t begin = 0;
    for (std::size_t dot; (dot = key.find('.', begin)) != std::string::npos; begin = dot + 1)
      place = &(*place)[key.substr(begin, dot - begin)];
    (*place)[key.substr(begin)] = plan_value_json(value);
  }
  return object;
}

}  // namespace reckon
