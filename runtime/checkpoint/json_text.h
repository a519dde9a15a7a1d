// JSON of files that may come from anywhere, for this folder's own use.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace reckon {

using Json = nlohmann::json;

/// A name from a file as text that is safe to show: in quotes, escaped, cut after 120 characters.
std::string shown_name(const std::string& name);

/// Throws ConfigError naming `file` for text that is no JSON, nests deeper than 16 levels or gives a key twice.
Json parse_json(std::string_view text, const std::string& file);

}  // namespace reckon
