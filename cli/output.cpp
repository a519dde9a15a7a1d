#include "cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "plan/errors.h"

namespace reckon {

namespace {

bool colour_wanted(ColourChoice choice) {
  if (choice != ColourChoice::automatic) return choice == ColourChoice::always;
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal && std::strcmp(terminal, "dumb") == 0;
  return ::isatty(STDOUT_FILENO) && !(no_color && *no_color) && !dumb;
}

}  // namespace

Output::Output(bool json, ColourChoice colour) : json_(json) {
  style_.colour = !json && colour_wanted(colour);
  style_.bars = !json && ::isatty(STDOUT_FILENO);
}

void Output::result(std::string_view text) const {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw RunError(fmt::format("the result cannot be written to standard output: {}", std::strerror(errno)));
}

void Output::note(std::string_view text) const {
  std::fputs(fmt::format("{}\n", text).c_str(), stderr);
}

void Output::warning(std::string_view text) const {
  std::fputs(fmt::format("warning: {}\n", text).c_str(), stderr);
}

}  // namespace reckon
