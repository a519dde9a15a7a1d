// TOML text as the same tree as YAML; the rest of the project never sees the TOML library.
#pragma once

#include <string>
#include <string_view>

#include "plan/yaml_document.h"

namespace reckon {

/// Throws ConfigError with file, line and column on bad syntax.
YamlValue parse_toml(std::string_view text, const std::string& file);

}  // namespace reckon
