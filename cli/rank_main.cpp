// reckon-rank: one rank of a run or a calibration (all of them with --backend threads). It alone links MPI and
// libtorch.
#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>

#include "cli/rank/calibrate_command.h"
#include "cli/rank/rank_options.h"
#include "cli/rank/train_command.h"
#include "plan/errors.h"

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

}  // namespace

int main(int argc, char** argv) {
  bool ranks_started = false;
  const auto fail = [&](const std::string& message, reckon::ExitCode code) {
    if (should_tell(message, !ranks_started)) fmt::print(stderr, "reckon-rank: {}\n", message);
    return static_cast<int>(code);
  };
  try {
    const reckon::RankOptions options = reckon::parse_rank_options(argc, argv);
    if (options.command == "calibrate") reckon::calibrate_command(options);
    else reckon::train_command(options, [&] { ranks_started = true; });
    return 0;
  } catch (const reckon::Error& error) {
    int code = 0;
    for (const reckon::Diagnostic& diagnostic : error.diagnostics())
      code = fail(to_string(diagnostic), error.exit_code());
    return code;
  } catch (const std::bad_alloc&) {
    return fail("this machine has not enough memory for it", reckon::ExitCode::run_failed);
  } catch (const std::exception& error) {
    return fail(fmt::format("this is a bug in reckon, please report it: {}", error.what()),
                reckon::ExitCode::run_failed);
  }
}
