#pragma once

#include <string>

namespace reckon {

/// As the kernel names this machine's processor; "processor" where it does not.
std::string processor_name();

}  // namespace reckon
