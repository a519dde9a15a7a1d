// What the end of a group of ranks means to the user.
#pragma once

#include <filesystem>
#include <string>

#include "cli/run_process.h"

namespace reckon {

/// Throws the Error for an end that is no success; `what` failed, as in "the run". Exit codes of the command contract
/// are passed on, deaths by a signal are explained. What the ranks said themselves is read from `error_file`, if they
/// wrote it.
[[noreturn]] void throw_rank_failure(const std::string& what, const ProcessEnd& end,
                                     const std::filesystem::path& error_file);

}  // namespace reckon
