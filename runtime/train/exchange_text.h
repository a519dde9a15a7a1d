#pragma once

#include <string>
#include <vector>

#include "runtime/comm/communicator.h"

namespace reckon {

/// Every rank's text on every rank, by rank. Collective.
std::vector<std::string> exchange_text(Communicator& world, const std::string& own);

}  // namespace reckon
