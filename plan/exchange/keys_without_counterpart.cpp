#include <fmt/format.h>

#include <algorithm>

#include "plan/exchange/export_plan.h"
#include "plan/plan_schema.h"

namespace reckon {

namespace {

/// A value on one line.
std::string one_line(const YamlValue& value) {
  std::string text = value.kind == YamlValue::Kind::scalar ? value.text : write_yaml(value);
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

}  // namespace

std::vector<std::string> keys_without_counterpart(const Plan& plan, const std::vector<std::string_view>& covered,
                                                  std::string_view tool) {
  std::vector<std::string> sentences;
  Plan usual;
  usual.gradients.wire = plan.gradients.stored;  // unless written, these two follow
  usual.activations.stored = plan.precision.compute;
  for (const PlanKey& key : plan_keys()) {
    const auto covers = [&](std::string_view start) { return key.path.starts_with(start); };
    if (key.required || std::any_of(covered.begin(), covered.end(), covers)) continue;
    const std::string value = one_line(key.get(plan));
    if (value != one_line(key.get(usual)) && !(key.path == "activations.stored" && value == "bf16"))
      sentences.push_back(fmt::format("{} {} has no counterpart in {}", key.path, value, tool));
  }
  return sentences;
}

}  // namespace reckon
