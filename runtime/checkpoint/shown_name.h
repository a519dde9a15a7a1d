// Names that come from a file, as a message may show them.
#pragma once

#include <string>

namespace reckon {

/// In quotes, control characters and all beyond ASCII escaped, cut after 120 characters.
std::string shown_name(const std::string& name);

}  // namespace reckon
