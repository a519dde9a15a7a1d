// JSON of files that may come from anywhere, for this folder's own use.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/checkpoint/shown_name.h"

namespace reckon {

using Json = nlohmann::json;

/// Throws ConfigError naming `file` for text that is no JSON, nests deeper than 16 levels or gives a key twice.
Json parse_json(std::string_view text, const std::string& file);

}  // namespace reckon
