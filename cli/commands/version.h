// `reckon --version`: the version and which parts this build has.
#pragma once

#include "cli/output.h"
#include "plan/errors.h"

namespace reckon {

ExitCode version_command(const Output& output);

}  // namespace reckon
