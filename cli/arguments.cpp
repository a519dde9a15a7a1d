#include "cli/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands/version.h"
#include "plan/nearest_name.h"

namespace reckon {

namespace {

using Command = std::function<ExitCode(const Output&)>;

/// The parser while it is being built. Options of a command live as long as the command that uses them.
struct Parser {
  CLI::App app{"Predict, simulate, run and compare parallel plans for training large language models.", "reckon"};
  ColourChoice colour = ColourChoice::automatic;
  bool json = false;
  Command chosen;
};

void add_general_options(Parser& parser) {
  CLI::App& app = parser.app;
  app.require_subcommand(0, 1);
  app.fallthrough();  // general options may also stand after the command
  app.set_help_flag("-h,--help", "Show this help, or a command's with `reckon COMMAND --help`");
  app.add_flag("--json", parser.json, "One JSON document on standard output, nothing else there");
  const std::map<std::string, ColourChoice> choices = {
      {"auto", ColourChoice::automatic}, {"always", ColourChoice::always}, {"never", ColourChoice::never}};
  app.add_option("--color", parser.colour, "auto, always or never; auto also honours NO_COLOR")
      ->transform(CLI::CheckedTransformer(choices).description(""));
  app.add_flag_callback(
      "--version", [&parser] { parser.chosen = version_command; }, "Version and build parts");
  app.footer(
      "Exit codes: 0 success, 2 usage or configuration, 3 broken rule, 4 does not fit, 5 disagreement,\n"
      "6 run failed, 7 timeout. Memory is in GiB (2^30).");
}

std::string words_about(const CLI::ParseError& error, const Parser& parser, int argc, const char* const* argv) {
  std::vector<std::string> names;
  for (const CLI::App* command : parser.app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (argc > 1 && argv[1][0] != '-' && std::find(names.begin(), names.end(), argv[1]) == names.end()) {
    std::string message = fmt::format("there is no command `{}`", argv[1]);
    if (const std::string near = nearest_name(argv[1], names); !near.empty())
      message += fmt::format("; did you mean `reckon {}`?", near);
    return message + " See `reckon --help`.";
  }
  const auto given = parser.app.get_subcommands();
  return fmt::format("{}. See `reckon {}--help`.", error.what(), given.empty() ? "" : given[0]->get_name() + " ");
}

ExitCode print_help(const Output& output, const std::string& help) {
  output.result(help);
  return ExitCode::success;
}

}  // namespace

Invocation parse_arguments(int argc, const char* const* argv) {
  Parser parser;
  add_general_options(parser);
  try {
    parser.app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const auto given = parser.app.get_subcommands();
    const std::string help = (given.empty() ? &parser.app : given[0])->help();
    parser.chosen = [help](const Output& output) { return print_help(output, help); };
  } catch (const CLI::ParseError& error) {
    throw ConfigError(words_about(error, parser, argc, argv));
  }
  if (!parser.chosen) throw ConfigError("a command is missing, e.g. `reckon plan PLAN`. See `reckon --help`.");
  return {parser.colour, parser.chosen};
}

}  // namespace reckon
