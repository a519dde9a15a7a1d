// `reckon doctor`: what is installed, what is missing, and the command that brings it.
#pragma once

#include "cli/output.h"
#include "plan/errors.h"

namespace reckon {

ExitCode doctor_command(const Output& output);

}  // namespace reckon
