// `reckon completion`: the completion script of a shell, or the manual page.
#pragma once

#include <string>

#include "cli/command_tree.h"
#include "cli/output.h"
#include "plan/errors.h"

namespace reckon {

struct CompletionCommand {
  std::string shell;  // bash, zsh, fish or man
};

ExitCode completion_command(const CompletionCommand& options, const CommandTree& tree, const Output& output);

}  // namespace reckon
