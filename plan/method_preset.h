// Published methods as sets of plan keys: `method: agoq` is the same as writing these keys first.
#pragma once

#include <string>
#include <vector>

namespace reckon {

struct MethodPreset {
  std::string name;
  std::string meaning;
  std::vector<std::string> settings;  // as overrides: "parallel.zero=1"
};

const std::vector<MethodPreset>& method_presets();

/// Settings of the preset of that name; none for the empty name and for names that do not exist.
std::vector<std::string> method_settings(const std::string& name);

}  // namespace reckon
