// Completion scripts of three shells, made from the command tree. Names of plans, models, hardware and plan keys stand
// in the script as they are when it is made.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/command_tree.h"

namespace reckon {

struct KnownNames {
  std::vector<std::string> plans, models, hardware, keys;  // keys: "parallel.tensor"
  std::vector<std::string> foreign_kinds, export_targets;
  std::map<std::string, std::vector<std::string>> values;  // of keys that take one of a few words
};

std::string bash_completion(const CommandTree& tree, const KnownNames& names);
std::string zsh_completion(const CommandTree& tree, const KnownNames& names);
std::string fish_completion(const CommandTree& tree, const KnownNames& names);

}  // namespace reckon
