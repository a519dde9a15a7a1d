// "0.1" or "10%" -> 0.1.
#pragma once

#include <string>

namespace reckon {

/// Throws ConfigError for anything but a finite share of 0 or more. `whole` is what the user wrote, for the message.
double parse_share(const std::string& text, const std::string& whole);

}  // namespace reckon
