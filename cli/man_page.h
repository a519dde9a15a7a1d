// The manual page reckon(1), made from the same words as --help.
#pragma once

#include <string>

#include "cli/command_tree.h"

namespace reckon {

/// roff; the version stands in its foot.
std::string man_page(const CommandTree& tree, const std::string& version);

}  // namespace reckon
