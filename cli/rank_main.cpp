// reckon-rank: one rank of a run or a calibration (all of them with --backend threads). It alone links MPI and
// libtorch.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <string_view>
#include <vector>

#include "cli/launcher.h"
#include "cli/rank/calibrate_command.h"
#include "cli/rank/rank_options.h"
#include "cli/rank/train_command.h"
#include "plan/errors.h"
#include "report/error_json.h"
#include "report/write_file.h"

namespace {

/// A failure that every process meets is told by rank 0; one that a rank met alone, by that rank. The others hear of it
/// as "rank N failed: ..." and keep quiet.
bool should_tell(std::string_view message, bool met_by_all) {
  if (met_by_all) {
    const auto place = reckon::enclosing_launcher();
    return !place || place->rank == 0;
  }
  return !(message.starts_with("rank ") && message.find(" failed: ") < 16);
}

/// Leaves the error where `reckon run` reads it; false when it could not.
bool leave_error(const std::filesystem::path& out, reckon::ExitCode code,
                 const std::vector<reckon::Diagnostic>& errors) {
  std::error_code error;
  if (!std::filesystem::is_directory(out, error)) return false;
  try {
    reckon::write_file(out / "error.json", reckon::error_json(code, errors));
    return true;
  } catch (const reckon::Error&) {  // a full disk, say: standard error is left
    return false;
  }
}

struct Failure {
  reckon::ExitCode code;
  std::vector<reckon::Diagnostic> errors;
};

Failure describe(std::exception_ptr failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const reckon::Error& error) {
    return {error.exit_code(), error.diagnostics()};
  } catch (const std::bad_alloc&) {
    return {reckon::ExitCode::run_failed, {{"this machine has not enough memory for it", {}, 0, 0, {}}}};
  } catch (const std::exception& error) {
    const std::string message = fmt::format("this is a bug in reckon, please report it: {}", error.what());
    return {reckon::ExitCode::run_failed, {{message, {}, 0, 0, {}}}};
  }
}

/// Returns the exit code.
int tell(const Failure& failure, const std::filesystem::path& out, bool met_by_all) {
  if (should_tell(failure.errors.front().message, met_by_all)) {
    const bool left = leave_error(out, failure.code, failure.errors);
    if (!left || std::getenv("RECKON_STARTED_BY_RUN") == nullptr)
      for (const reckon::Diagnostic& error : failure.errors)
        std::fputs(fmt::format("reckon-rank: {}\n", to_string(error)).c_str(), stderr);
  }
  return static_cast<int>(failure.code);
}

}  // namespace

int main(int argc, char** argv) {
  bool ranks_started = false;
  reckon::RankOptions options;
  const auto tell_failure = [&](std::exception_ptr failure) {
    return tell(describe(failure), options.out, !ranks_started);
  };
  try {
    options = reckon::parse_rank_options(argc, argv);
    if (options.command == "calibrate") reckon::calibrate_command(options);
    else
      reckon::train_command(
          options, [&] { ranks_started = true; }, tell_failure);
    return 0;
  } catch (...) {
    return tell_failure(std::current_exception());
  }
}
