// The commands and their options as plain words: what completion scripts and the manual page are made from.
#pragma once

#include <string>
#include <vector>

namespace reckon {

struct OptionWords {
  std::vector<std::string> names;  // "--trace", "-h"; for positionals the name in help, "PLAN"
  std::string description;
  bool takes_value = false;
};

struct CommandWords {
  std::string name, description, example;
  std::vector<OptionWords> options, arguments;
};

struct CommandTree {
  std::string description, footer;
  std::vector<OptionWords> options;  // of every command
  std::vector<CommandWords> commands;
};

}  // namespace reckon
