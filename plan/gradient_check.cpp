#include "plan/gradient_check.h"

#include <utility>

namespace reckon {

std::string weight_group(const std::string& parameter) {
  static const std::pair<const char*, const char*> kGroups[] = {
      {"norm", "norm"},         {"q_proj", "query"},   {"k_proj", "key"}, {"v_proj", "value"},
      {"o_proj", "projection"}, {"gate_proj", "gate"}, {"up_proj", "up"}, {"down_proj", "down"},
      {"embed_", "embedding"},  {"lm_head", "head"}};
  for (const auto& [part, group] : kGroups)
    if (parameter.find(part) != std::string::npos) return group;
  return "other";
}

}  // namespace reckon
