#include "plan/errors.h"

namespace reckon {

std::string to_string(const Diagnostic& diagnostic) {
  std::string text;
  if (!diagnostic.file.empty()) {
    text = diagnostic.file;
    if (diagnostic.line > 0) text += ":" + std::to_string(diagnostic.line) + ":" + std::to_string(diagnostic.column);
    text += ": ";
  }
  return text + diagnostic.message;
}

namespace {

std::string join(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) {
    if (!text.empty()) text += "\n";
    text += to_string(diagnostic);
  }
  return text;
}

}  // namespace

Error::Error(ExitCode exit_code, std::vector<Diagnostic> diagnostics)
    : std::runtime_error(join(diagnostics)), exit_code_(exit_code), diagnostics_(std::move(diagnostics)) {}

}  // namespace reckon
