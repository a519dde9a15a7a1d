// `reckon score`: predictions scored against a table of measured runs.
#pragma once

#include <string>
#include <vector>

#include "cli/output.h"
#include "plan/errors.h"

namespace reckon {

struct ScoreCommand {
  std::string file;
  std::vector<std::string> overrides;
  bool rows = false;
  std::string group_by;
  std::vector<std::string> fill;  // "COLUMN=VALUE"
  std::vector<std::string> map;   // "COLUMN:OLD=NEW"
  std::string recompute = "both", tflops = "none";
  std::string tolerance;  // on the time MAPE of a group
};

/// disagreement when the step time MAPE of a group is beyond the tolerance.
ExitCode score_command(const ScoreCommand& options, const Output& output);

}  // namespace reckon
