// The kinds of failure a user can meet, each with the exit code of the command contract.
// They are thrown anywhere and caught in main only.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace reckon {

enum class ExitCode {
  success = 0,
  configuration = 2,
  broken_rule = 3,
  does_not_fit = 4,
  disagreement = 5,
  run_failed = 6,
  timeout = 7,
};

/// One thing that is wrong, with its place. Line and column start at 1; 0 means unknown.
struct Diagnostic {
  std::string message;  // a sentence: what was found, what would be right
  std::string file;
  int line = 0;
  int column = 0;
  std::string key;  // dotted plan key, empty if none
};

/// "file:line:column: message (key)", leaving out what is unknown.
std::string to_string(const Diagnostic& diagnostic);

/// Base of all errors shown to users: one or more diagnostics and an exit code.
class Error : public std::runtime_error {
 public:
  Error(ExitCode exit_code, std::vector<Diagnostic> diagnostics);

  ExitCode exit_code() const { return exit_code_; }
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  ExitCode exit_code_;
  std::vector<Diagnostic> diagnostics_;
};

/// The user can fix it in a file or an option: unknown key, wrong type, missing unit, unreadable file.
class ConfigError : public Error {
 public:
  explicit ConfigError(std::vector<Diagnostic> diagnostics) : Error(ExitCode::configuration, std::move(diagnostics)) {}
  explicit ConfigError(std::string message)
      : ConfigError(std::vector<Diagnostic>{{std::move(message), {}, 0, 0, {}}}) {}
};

/// The plan is well-formed but breaks rules; every broken rule is listed.
class RuleError : public Error {
 public:
  explicit RuleError(std::vector<Diagnostic> diagnostics) : Error(ExitCode::broken_rule, std::move(diagnostics)) {}
};

/// A run, a backend or an output failed: MPI, NCCL, CUDA, file system; names call, rank and the library's text.
class RunError : public Error {
 public:
  explicit RunError(std::string message, ExitCode code = ExitCode::run_failed)
      : Error(code, {{std::move(message), {}, 0, 0, {}}}) {}
};

}  // namespace reckon
