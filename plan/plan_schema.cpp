#include "plan/plan_schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "plan/nearest_name.h"

namespace reckon {

namespace {

/// Defaults that follow another key when they are not given (follow_defaults in load_plan.cpp).
std::string followed_default(const std::string& path) {
  if (path == "activations.stored") return "precision.compute (bf16 below 16 bits)";
  if (path == "gradients.wire") return "gradients.stored";
  return {};
}

std::string default_text(const PlanKey& key) {
  if (key.required) return "required";
  if (std::string followed = followed_default(key.path); !followed.empty()) return followed;
  std::string text = write_yaml(key.get(Plan{}));
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text == "\"\"" ? "empty" : text;
}
std::vector<PlanKey> keys_with_defaults() {
  std::vector<PlanKey> keys = make_plan_keys();
  for (PlanKey& key : keys) key.default_text = default_text(key);
  return keys;
}

std::string last_part(std::string_view path) {
  return std::string(path.substr(path.rfind('.') + 1));
}

}  // namespace

const std::vector<PlanKey>& plan_keys() {
  static const std::vector<PlanKey> keys = keys_with_defaults();
  return keys;
}

const PlanKey* find_plan_key(std::string_view path) {
  for (const PlanKey& key : plan_keys()) {
    if (key.path == path) return &key;
  }
  return nullptr;
}

std::string unknown_plan_key(std::string_view path) {
  std::vector<std::string> paths, elsewhere;
  for (const PlanKey& key : plan_keys()) {
    paths.push_back(key.path);
    paths.push_back(key.path.substr(0, key.path.find('.')));  // sections
    if (last_part(key.path) == last_part(path)) elsewhere.push_back(key.path);
  }
  const std::string shown = describe(YamlValue::scalar(std::string(path)));
  if (!elsewhere.empty()) {
    return fmt::format("unknown key {}; did you mean '{}'?", shown, fmt::join(elsewhere, "' or '"));
  }
  const auto is_below = [&](const std::string& key) { return key.starts_with(std::string(path) + "."); };
  if (std::any_of(paths.begin(), paths.end(), is_below))
    return fmt::format("{} is a group of keys, set one by one: {}.KEY=VALUE", shown, path);
  if (const std::string nearest = nearest_name(path, paths); !nearest.empty()) {
    return fmt::format("unknown key {}; did you mean '{}'?", shown, nearest);
  }
  std::vector<std::string> leaves;
  for (const PlanKey& key : plan_keys()) leaves.push_back(last_part(key.path));
  if (const std::string leaf = nearest_name(last_part(path), leaves); !leaf.empty()) {
    const auto index = std::find(leaves.begin(), leaves.end(), leaf) - leaves.begin();
    return fmt::format("unknown key {}; did you mean '{}'?", shown, plan_keys()[static_cast<std::size_t>(index)].path);
  }
  return fmt::format("unknown key {}; the keys are listed in configs/README.md", shown);
}

std::string plan_key_table() {
  std::string table = "| key | type | unit | default | values | meaning |\n|---|---|---|---|---|---|\n";
  for (const PlanKey& key : plan_keys()) {
    table += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", key.path, key.type, key.unit, key.default_text,
                         key.allowed, key.meaning);
  }
  return table;
}

}  // namespace reckon
