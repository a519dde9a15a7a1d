// The `--option value` pairs of a launch script: a shell script with arrays or strings of options, or one long command
// line. This is no shell: variables that the script sets are put in, `$((...))` of whole numbers is computed, comments
// and redirections are left out, both branches of an `if` are read. Nothing is executed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/exchange/source_fields.h"

namespace reckon {

struct ShellArguments {
  /// An option without value has the value `true`; several values are a list. What a variable that is not set stood for
  /// stays as written: "$NAME". Lines `#SBATCH --nodes=4` give "#SBATCH --nodes" and set SLURM_NNODES
  /// (slurm_job.h).
  std::vector<SourceField> options;
  std::vector<std::string> warnings;
};

ShellArguments shell_arguments(std::string_view text);

}  // namespace reckon
