#include "cli/man_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace reckon {

namespace {

/// roff reads - as a hyphen, \ as an escape, and . or ' at the start of a line as a request.
std::string roff(const std::string& text) {
  std::string escaped;
  for (const char letter : text) {
    const bool starts_line = escaped.empty() || escaped.back() == '\n';
    if (starts_line && (letter == '.' || letter == '\'')) escaped += "\\&";
    if (letter == '-') escaped += "\\-";
    else if (letter == '\\') escaped += "\\e";
    else escaped += letter;
  }
  return escaped;
}

std::string option_text(const OptionWords& option) {
  return fmt::format(".TP\n.B {}{}\n{}\n", roff(fmt::format("{}", fmt::join(option.names, ", "))),
                     option.takes_value ? " \\fIVALUE\\fR" : "", roff(option.description));
}

std::string command_text(const CommandWords& command) {
  std::string arguments;
  for (const OptionWords& argument : command.arguments) arguments += " " + argument.names.front();
  std::string text = fmt::format(".SS {}\n.B reckon {}\\fR{} [options]\n.PP\n{}.\n", roff(command.name),
                                 roff(command.name), roff(arguments), roff(command.description));
  for (OptionWords argument : command.arguments) {
    argument.takes_value = false;
    text += option_text(argument);
  }
  for (const OptionWords& option : command.options) text += option_text(option);
  return text + fmt::format(".PP\n{}\n", roff(command.example));
}

}  // namespace

std::string man_page(const CommandTree& tree, const std::string& version) {
  std::string text = fmt::format(".TH RECKON 1 \"\" \"reckon {}\" \"User Commands\"\n.SH NAME\nreckon \\- {}\n",
                                 version, roff(tree.description));
  text += ".SH SYNOPSIS\n.B reckon\n.I COMMAND\n[arguments] [options] [key=value ...]\n.SH OPTIONS OF EVERY COMMAND\n";
  for (const OptionWords& option : tree.options) text += option_text(option);
  text += ".SH COMMANDS\n";
  for (const CommandWords& command : tree.commands) text += command_text(command);
  text += fmt::format(".SH EXIT STATUS\n{}\n", roff(tree.footer));
  text +=
      ".SH ENVIRONMENT\n.TP\n.B RECKON_CONFIGS\nFolder with models/, hardware/ and plans/, in place of the installed "
      "one.\n"
      ".TP\n.B NO_COLOR\nNo colour, as \\-\\-color never.\n";
  return text;
}

}  // namespace reckon
