// `reckon explain`: which tensor has a size, what binds a plan, why one plan is slower than another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/output.h"
#include "plan/errors.h"

namespace reckon {

struct ExplainCommand {
  std::string plan;
  std::vector<std::string> rest;  // a second plan or a size (the words of a pasted line), and overrides of the plans
  std::int64_t most_devices = 0;  // of the smallest plan; 0 = eight times the plan's
};

ExitCode explain_command(const ExplainCommand& options, const Output& output);

}  // namespace reckon
