#include "cli/commands/version.h"

#include <fmt/format.h>

#include "cli/rank_program.h"
#include "report/version_json.h"

namespace reckon {

ExitCode version_command(const Output& output) {
  const auto rank_program = find_rank_program();
  const BuildParts parts{RECKON_VERSION, RECKON_COMPILER, RECKON_BACKENDS, rank_program ? rank_program->string() : ""};
  if (output.json()) {
    output.result(version_json(parts));
    return ExitCode::success;
  }
  output.result(fmt::format("reckon {}\nplanner and simulator, built with {}\n", parts.version, parts.compiler));
  output.result(fmt::format("backends: {}\n", parts.backends.empty() ? "none" : parts.backends));
  output.result(rank_program
                    ? fmt::format("training and calibration: {}\n", parts.rank_program)
                    : "training and calibration: not in this build; `./bootstrap build --preset cpu` brings them\n");
  return ExitCode::success;
}

}  // namespace reckon
