// Versions of the libraries that decide how fast a run is.
#pragma once

#include <string>

namespace reckon {

std::string libtorch_version();

}  // namespace reckon
