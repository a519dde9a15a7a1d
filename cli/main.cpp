// Runs one command and turns what it throws into sentences and the exit codes of the command contract.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string_view>

#include "cli/arguments.h"
#include "report/error_json.h"

namespace {

int report_failure(bool json, reckon::ExitCode code, const std::vector<reckon::Diagnostic>& errors) {
  for (const reckon::Diagnostic& error : errors)
    std::fputs(fmt::format("reckon: {}\n", to_string(error)).c_str(), stderr);
  if (json) std::fputs(reckon::error_json(code, errors).c_str(), stdout);  // a closed stream must not throw here
  return static_cast<int>(code);
}

}  // namespace

int main(int argc, char** argv) {
  // Known before the command line is parsed, so that a wrong one is reported as JSON too.
  const bool json = std::any_of(argv, argv + argc, [](std::string_view argument) { return argument == "--json"; });
  try {
    const reckon::Invocation invocation = reckon::parse_arguments(argc, argv);
    return static_cast<int>(invocation.command(reckon::Output(json, invocation.colour)));
  } catch (const reckon::Error& error) {
    return report_failure(json, error.exit_code(), error.diagnostics());
  } catch (const std::bad_alloc&) {
    return report_failure(json, reckon::ExitCode::run_failed,
                          {{"this machine has not enough memory for it", {}, 0, 0, {}}});
  } catch (const std::exception& error) {
    const std::string message = fmt::format("this is a bug in reckon, please report it: {}", error.what());
    return report_failure(json, reckon::ExitCode::run_failed, {{message, {}, 0, 0, {}}});
  }
}
