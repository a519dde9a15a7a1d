#include "plan/changed_keys.h"

#include <algorithm>

namespace reckon {

namespace {

using Leaves = std::vector<std::pair<std::string, std::string>>;

std::string one_line(const YamlValue& value) {
  std::string text = value.kind == YamlValue::Kind::scalar ? value.text : write_yaml(value);
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

/// Every value of a mapping under its dotted path.
void collect(const YamlValue& value, const std::string& path, Leaves& leaves) {
  if (value.kind != YamlValue::Kind::mapping) return leaves.emplace_back(path, one_line(value)), void();
  for (const YamlEntry& entry : value.entries) collect(entry.value, path + "." + entry.key, leaves);
}

Leaves leaves_of(const PlanKey& key, const Plan& plan) {
  Leaves leaves;
  collect(key.get(plan), key.path, leaves);
  return leaves;
}

/// Of a model or hardware: its name, or what changed inside it.
void add_parts(const PlanKey& key, const Plan& first, const Plan& second, std::vector<ChangedKey>& changed) {
  const Leaves before = leaves_of(key, first), after = leaves_of(key, second);
  const auto value = [&](const Leaves& leaves, const std::string& path) {
    const auto found = std::find_if(leaves.begin(), leaves.end(), [&](const auto& leaf) { return leaf.first == path; });
    return found == leaves.end() ? std::string("default") : found->second;
  };
  const std::string name = key.path + ".name";
  if (value(before, name) != value(after, name))
    return changed.push_back({key.path, value(before, name), value(after, name)});
  for (const auto& [path, text] : before)
    if (value(after, path) != text) changed.push_back({path, text, value(after, path)});
  for (const auto& [path, text] : after)
    if (std::none_of(before.begin(), before.end(), [&, &path = path](const auto& leaf) { return leaf.first == path; }))
      changed.push_back({path, "default", text});
}

}  // namespace

std::vector<ChangedKey> changed_keys(const Plan& first, const Plan& second) {
  std::vector<ChangedKey> changed;
  for (const PlanKey& key : plan_keys()) {
    const std::string before = one_line(key.get(first)), after = one_line(key.get(second));
    if (before == after) continue;
    if (key.path == "model" || key.path == "hardware") add_parts(key, first, second, changed);
    else changed.push_back({key.path, before, after});
  }
  return changed;
}

const PlanKey& key_of(const ChangedKey& changed) {
  const PlanKey* whole = find_plan_key(changed.key);
  return whole != nullptr ? *whole : *find_plan_key(changed.key.substr(0, changed.key.find('.')));
}

}  // namespace reckon
