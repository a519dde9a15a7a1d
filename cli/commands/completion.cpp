#include "cli/commands/completion.h"

#include <fmt/format.h>

#include <sstream>

#include "cli/commands/export.h"
#include "cli/completion.h"
#include "cli/find_configs.h"
#include "cli/man_page.h"
#include "plan/exchange/foreign_plan.h"
#include "plan/plan_schema.h"

namespace reckon {

namespace {

/// "a, b, c" in its words.
std::vector<std::string> split_words(const std::string& list) {
  std::vector<std::string> words;
  std::istringstream stream(list);
  for (std::string word; std::getline(stream >> std::ws, word, ',');) words.push_back(word);
  return words;
}

KnownNames known_names() {
  const ConfigPaths paths = find_configs();
  KnownNames names{
      known_plans(paths), known_models(paths), known_hardware(paths), {}, foreign_kinds(), export_targets(), {}};
  for (const PlanKey& key : plan_keys()) {
    names.keys.push_back(key.path);
    if (key.type == "choice") names.values[key.path] = split_words(key.allowed);
  }
  names.values["model"] = names.models;
  names.values["hardware"] = names.hardware;
  return names;
}

}  // namespace

ExitCode completion_command(const CompletionCommand& options, const CommandTree& tree, const Output& output) {
  if (output.json()) throw ConfigError("a completion script is no JSON document; leave --json out");
  if (options.shell == "bash") output.result(bash_completion(tree, known_names()));
  else if (options.shell == "zsh") output.result(zsh_completion(tree, known_names()));
  else if (options.shell == "fish") output.result(fish_completion(tree, known_names()));
  else if (options.shell == "man") output.result(man_page(tree, RECKON_VERSION));
  else
    throw ConfigError(fmt::format("there is no completion for {}; bash, zsh, fish and man (the manual page) are known",
                                  options.shell));
  return ExitCode::success;
}

}  // namespace reckon
