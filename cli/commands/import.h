// `reckon import`: the launch file of another tool -> a plan file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/output.h"
#include "plan/errors.h"

namespace reckon {

struct ImportCommand {
  std::string file;
  std::string kind;      // empty = found out
  std::string out;       // empty = standard output
  std::string hardware;  // empty = assumed
  std::int64_t devices = 0;
  bool strict = false;  // what is not understood is an error
  std::vector<std::string> overrides;
};

ExitCode import_command(const ImportCommand& options, const Output& output);

}  // namespace reckon
