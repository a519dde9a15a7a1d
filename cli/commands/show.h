// `reckon show`: what is known, and exact figures of one model, hardware file, plan or number format.
#pragma once

#include <string>

#include "cli/output.h"
#include "plan/errors.h"

namespace reckon {

struct ShowOptions {
  std::string what;  // models, hardware, plans, formats, a name, or a path
};

ExitCode show_command(const ShowOptions& options, const Output& output);

}  // namespace reckon
