// What the end of a group of ranks means to the user.
#pragma once

#include <string>

#include "cli/run_process.h"

namespace reckon {

/// Throws RunError for an end that is no success; `what` failed, as in "the run". Exit codes of the command contract
/// are passed on, deaths by a signal are explained. The ranks themselves have said on standard error what went wrong.
[[noreturn]] void throw_rank_failure(const std::string& what, const ProcessEnd& end);

}  // namespace reckon
