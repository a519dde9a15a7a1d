#include "cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace reckon {

namespace {

using Texts = std::vector<std::string>;

/// The values of an option, separated by blanks; empty where any text or a file may stand.
std::string values_of(const std::string& option, const KnownNames& names) {
  if (option == "--backend") return "threads mpi nccl";
  if (option == "--color") return "auto always never";
  if (option == "--recompute") return "both none full";
  if (option == "--from") return fmt::format("{}", fmt::join(names.foreign_kinds, " "));
  if (option == "--to") return fmt::format("{}", fmt::join(names.export_targets, " "));
  if (option == "--hardware") return fmt::format("{}", fmt::join(names.hardware, " "));
  return {};
}

/// "key=" for every key; where the shell takes key=value for one word, each value that a key can have.
void add_keys(const KnownNames& names, bool with_values, Texts& words) {
  for (const std::string& key : names.keys) {
    const auto values = names.values.find(key);
    if (!with_values || values == names.values.end()) words.push_back(key + "=");
    else
      for (const std::string& value : values->second) words.push_back(fmt::format("{}={}", key, value));
  }
}

/// What the arguments of a command are, in words that a shell completes.
std::string argument_words(const CommandWords& command, const KnownNames& names, bool with_values) {
  const auto takes = [&](const char* argument) {
    return std::any_of(command.arguments.begin(), command.arguments.end(),
                       [&](const OptionWords& one) { return one.names.front() == argument; });
  };
  if (command.name == "show")
    return fmt::format("models hardware plans formats {} {}", fmt::join(names.models, " "),
                       fmt::join(names.hardware, " "));
  if (command.name == "reproduce") return "agoq hsap";
  if (command.name == "completion") return "bash zsh fish man";
  Texts words;
  if (takes("PLAN")) words.insert(words.end(), names.plans.begin(), names.plans.end());
  if (takes("KEY=VALUE") || takes("WITH")) add_keys(names, with_values, words);
  return fmt::format("{}", fmt::join(words, " "));
}

Texts option_names(const CommandTree& tree, const CommandWords* command) {
  Texts names;
  const auto add = [&](const std::vector<OptionWords>& options) {
    for (const OptionWords& option : options) names.insert(names.end(), option.names.begin(), option.names.end());
  };
  if (command != nullptr) add(command->options);
  add(tree.options);
  return names;
}

Texts command_names(const CommandTree& tree) {
  Texts names;
  for (const CommandWords& command : tree.commands) names.push_back(command.name);
  return names;
}

/// Every option that takes a value, once.
std::vector<const OptionWords*> options_with_values(const CommandTree& tree) {
  std::vector<const OptionWords*> found;
  const auto add = [&](const std::vector<OptionWords>& options) {
    for (const OptionWords& option : options) {
      const bool seen =
          std::any_of(found.begin(), found.end(), [&](const OptionWords* one) { return one->names == option.names; });
      if (option.takes_value && !seen) found.push_back(&option);
    }
  };
  add(tree.options);
  for (const CommandWords& command : tree.commands) add(command.options);
  return found;
}

/// Inside single quotes of a shell, and inside the brackets of zsh.
std::string quoted(const std::string& text) {
  std::string plain;
  for (const char letter : text) {
    if (letter == '\'') plain += "'\\''";
    else if (letter == '[' || letter == ']' || letter == ':') plain += ' ';
    else plain += letter;
  }
  return plain;
}

}  // namespace

std::string bash_completion(const CommandTree& tree, const KnownNames& names) {
  std::string text = "# bash completion of reckon; `source <(reckon completion bash)`\n_reckon() {\n";
  text += "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= word words=\n";
  text +=
      "  if [[ $cur == '=' ]]; then prev='='; cur=; word=${COMP_WORDS[COMP_CWORD-1]}; else "
      "word=${COMP_WORDS[COMP_CWORD-2]}; fi\n";
  text += "  if [[ $prev == '=' ]]; then\n    case $word in\n";
  for (const auto& [key, values] : names.values)
    text += fmt::format("      {}) words='{}' ;;\n", key, fmt::join(values, " "));
  text += "    esac\n";
  text += "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")); return\n  fi\n";
  text += fmt::format(
      "  for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do case $word in {}) command=$word; break ;; esac; done\n",
      fmt::join(command_names(tree), "|"));
  text += "  case $prev in\n";
  for (const OptionWords* option : options_with_values(tree)) {
    const std::string values = values_of(option->names.front(), names);
    text += fmt::format("    {}) COMPREPLY=($(compgen {} -- \"$cur\")); return ;;\n", fmt::join(option->names, "|"),
                        values.empty() ? "-f" : fmt::format("-W '{}'", values));
  }
  text += "  esac\n  case $command in\n";
  for (const CommandWords& command : tree.commands)
    text += fmt::format("    {}) if [[ $cur == -* ]]; then words='{}'; else words='{}'; fi ;;\n", command.name,
                        fmt::join(option_names(tree, &command), " "), argument_words(command, names, false));
  text += fmt::format("    *) if [[ $cur == -* ]]; then words='{}'; else words='{}'; fi ;;\n  esac\n",
                      fmt::join(option_names(tree, nullptr), " "), fmt::join(command_names(tree), " "));
  text += "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n";
  text += "  [[ -n $command && $cur != -* ]] && COMPREPLY+=($(compgen -f -- \"$cur\"))\n";
  text +=
      "  [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n  return 0\n}\ncomplete -F "
      "_reckon reckon\n";
  return text;
}

std::string zsh_completion(const CommandTree& tree, const KnownNames& names) {
  std::string text =
      "#compdef reckon\n# zsh completion of reckon; `reckon completion zsh >\"${fpath[1]}/_reckon\"`\n_reckon() {\n  "
      "local -a commands words_of\n  commands=(\n";
  for (const CommandWords& command : tree.commands)
    text += fmt::format("    '{}:{}'\n", command.name, quoted(command.description));
  text +=
      "  )\n  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then _describe command commands; return; fi\n  local -a "
      "options\n  case $words[2] in\n";
  for (const CommandWords& command : tree.commands) {
    text += fmt::format("    {})\n      words_of=({})\n      options=(\n", command.name,
                        argument_words(command, names, true));
    for (const std::vector<OptionWords>* list : {&command.options, &tree.options})
      for (const OptionWords& option : *list)
        for (const std::string& name : option.names) {
          const std::string values = values_of(name, names);
          text += fmt::format("        '{}[{}]{}'\n", name, quoted(option.description),
                              !option.takes_value ? ""
                              : values.empty()    ? ":value:_files"
                                                  : fmt::format(":value:({})", values));
        }
    text += "      ) ;;\n";
  }
  text += "  esac\n  _arguments -S $options '*: :{compadd -S \"\" -a words_of; _files}'\n}\n";
  text += "if [[ $funcstack[1] == _reckon ]]; then _reckon \"$@\"; else compdef _reckon reckon; fi\n";
  return text;
}

std::string fish_completion(const CommandTree& tree, const KnownNames& names) {
  std::string text = "# fish completion of reckon; `reckon completion fish | source`\n";
  const auto add = [&](const std::string& condition, const OptionWords& option) {
    std::string line = fmt::format("complete -c reckon{}", condition);
    for (const std::string& name : option.names)
      line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (option.takes_value) line += " -r";
    if (const std::string values = values_of(option.names.front(), names); !values.empty())
      line += fmt::format(" -x -a '{}'", values);
    text += fmt::format("{} -d '{}'\n", line, quoted(option.description));
  };
  for (const OptionWords& option : tree.options) add("", option);
  for (const CommandWords& command : tree.commands) {
    text += fmt::format("complete -c reckon -n __fish_use_subcommand -f -a {} -d '{}'\n", command.name,
                        quoted(command.description));
    const std::string condition = fmt::format(" -n '__fish_seen_subcommand_from {}'", command.name);
    for (const OptionWords& option : command.options) add(condition, option);
    if (const std::string words = argument_words(command, names, true); !words.empty())
      text += fmt::format("complete -c reckon{} -a '{}'\n", condition, words);
  }
  return text;
}

}  // namespace reckon
