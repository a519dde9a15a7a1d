#include "cli/rank_end.h"

#include <fmt/format.h>

#include <csignal>
#include <cstring>

#include "plan/errors.h"
#include "report/error_json.h"

namespace reckon {

namespace {

std::string meaning(int signal) {
  switch (signal) {
    case SIGKILL: return "killed, most likely because the machine ran out of memory";
    case SIGBUS: return "bus error, most likely because /dev/shm or a disk is full";
    case SIGSEGV: return "segmentation fault, a bug in reckon-rank or a library";
    case SIGABRT: return "aborted, a bug in reckon-rank or a library";
    default: return ::strsignal(signal);
  }
}

}  // namespace

void throw_rank_failure(const std::string& what, const ProcessEnd& end, const std::filesystem::path& error_file) {
  std::error_code error;
  if (std::filesystem::exists(error_file, error)) throw read_error(error_file);
  if (end.interrupted_by) throw RunError(fmt::format("{} was interrupted; all its processes have ended", what));
  const int signal = end.signal                                          ? end.signal
                     : end.exit_code > 128 && end.exit_code < 128 + NSIG ? end.exit_code - 128
                                                                         : 0;
  if (signal) throw RunError(fmt::format("{} ended by signal {} ({})", what, signal, meaning(signal)));
  if (end.exit_code == static_cast<int>(ExitCode::timeout))
    throw RunError(fmt::format("{} was ended after a rank had been silent for too long", what), ExitCode::timeout);
  const bool of_contract = end.exit_code >= static_cast<int>(ExitCode::configuration) &&
                           end.exit_code <= static_cast<int>(ExitCode::timeout);
  const ExitCode code = of_contract ? static_cast<ExitCode>(end.exit_code) : ExitCode::run_failed;
  throw RunError(fmt::format("{} ended with exit code {}; the reason stands above", what, end.exit_code), code);
}

}  // namespace reckon
