// Which legal plans the runtime cannot carry out yet.
#pragma once

#include "plan/plan.h"

namespace reckon {

/// Throws ConfigError listing every key whose value the runtime does not execute yet, with what it does execute.
void require_executable(const Plan& plan);

/// What a rank may allocate: memory.limit, else the device's memory without its context. Throws ConfigError when the
/// context leaves nothing.
Bytes allocation_limit(const Plan& plan);

}  // namespace reckon
