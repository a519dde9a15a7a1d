// The command line -> a command ready to run. The only user of CLI11; commands see plain option structs.
#pragma once

#include <functional>

#include "cli/output.h"
#include "plan/errors.h"

namespace reckon {

struct Invocation {
  ColourChoice colour = ColourChoice::automatic;
  std::function<ExitCode(const Output&)> command;
};

/// Throws ConfigError for anything that is no valid command line; --help and --version are commands too.
Invocation parse_arguments(int argc, const char* const* argv);

}  // namespace reckon
