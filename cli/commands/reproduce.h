// `reckon reproduce`: the tables of a paper, published beside predicted.
#pragma once

#include <string>

#include "cli/output.h"
#include "plan/errors.h"

namespace reckon {

struct ReproduceOptions {
  std::string paper;  // agoq or hsap
};

ExitCode reproduce_command(const ReproduceOptions& options, const Output& output);

}  // namespace reckon
