#include <fmt/format.h>

#include <algorithm>

#include "plan/changed_keys.h"
#include "plan/exchange/export_plan.h"

namespace reckon {

std::vector<std::string> keys_without_counterpart(const Plan& plan, const std::vector<std::string_view>& covered,
                                                  std::string_view tool) {
  std::vector<std::string> sentences;
  Plan usual;
  usual.gradients.wire = plan.gradients.stored;  // unless written, these two follow
  usual.activations.stored = plan.precision.compute;
  for (const ChangedKey& changed : changed_keys(plan, usual)) {
    const auto covers = [&](std::string_view start) { return changed.key.starts_with(start); };
    if (key_of(changed).required || std::any_of(covered.begin(), covered.end(), covers)) continue;
    if (changed.key != "activations.stored" || changed.first != "bf16")
      sentences.push_back(fmt::format("{} {} has no counterpart in {}", changed.key, changed.first, tool));
  }
  return sentences;
}

}  // namespace reckon
