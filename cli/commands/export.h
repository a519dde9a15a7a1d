// `reckon export`: a plan as the file of another tool, or a run's weights as a folder of Hugging Face.
#pragma once

#include <string>
#include <vector>

#include "cli/output.h"
#include "plan/errors.h"

namespace reckon {

struct ExportCommand {
  std::string plan;
  std::string target;
  std::string out;  // empty = standard output
  std::vector<std::string> overrides;
};

/// What --to takes, for help and completion.
std::vector<std::string> export_targets();

ExitCode export_command(const ExportCommand& options, const Output& output);

}  // namespace reckon
