// Which legal plans the runtime cannot carry out yet.
#pragma once

#include "plan/plan.h"

namespace reckon {

/// Throws ConfigError listing every key whose value the runtime does not execute yet, with what it does execute.
void require_executable(const Plan& plan);

}  // namespace reckon
