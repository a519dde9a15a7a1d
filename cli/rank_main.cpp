// reckon-rank: one rank of a run or a calibration (all of them with --backend threads). It alone links MPI and
// libtorch.
#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <string_view>
#include <vector>

#include "cli/rank/calibrate_command.h"
#include "cli/rank/rank_options.h"
#include "cli/rank/train_command.h"
#include "plan/errors.h"
#include "report/error_json.h"
#include "report/write_file.h"

namespace {

/// Rank by the launcher's word, 0 without one.
int launched_rank() {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
    if (const char* text = std::getenv(variable)) return std::atoi(text);
  return 0;
}

/// A failure that every process meets is told by rank 0; one that a rank met alone, by that rank. The others hear of it
/// as "rank N failed: ..." and keep quiet.
bool should_tell(std::string_view message, bool met_by_all) {
  if (met_by_all) return launched_rank() == 0;
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

}  // namespace

int main(int argc, char** argv) {
  bool ranks_started = false;
  reckon::RankOptions options;
  const auto fail = [&](reckon::ExitCode code, const std::vector<reckon::Diagnostic>& errors) {
    if (should_tell(errors.front().message, !ranks_started)) {
      const bool left = leave_error(options.out, code, errors);
      if (!left || std::getenv("RECKON_STARTED_BY_RUN") == nullptr)
        for (const reckon::Diagnostic& error : errors) fmt::print(stderr, "reckon-rank: {}\n", to_string(error));
    }
    return static_cast<int>(code);
  };
  try {
    options = reckon::parse_rank_options(argc, argv);
    if (options.command == "calibrate") reckon::calibrate_command(options);
    else reckon::train_command(options, [&] { ranks_started = true; });
    return 0;
  } catch (const reckon::Error& error) {
    return fail(error.exit_code(), error.diagnostics());
  } catch (const std::bad_alloc&) {
    return fail(reckon::ExitCode::run_failed, {{"this machine has not enough memory for it", {}, 0, 0, {}}});
  } catch (const std::exception& error) {
    const std::string message = fmt::format("this is a bug in reckon, please report it: {}", error.what());
    return fail(reckon::ExitCode::run_failed, {{message, {}, 0, 0, {}}});
  }
}
