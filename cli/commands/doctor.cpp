#include "cli/commands/doctor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <thread>

#include "cli/calibration.h"
#include "cli/find_configs.h"
#include "cli/processor_name.h"
#include "cli/rank_program.h"
#include "report/doctor_report.h"
#include "report/format_quantity.h"

namespace reckon {

namespace {

namespace fs = std::filesystem;

/// Whether a program of that name can be started.
bool is_in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access((fs::path(folder) / program).c_str(), X_OK) == 0) return true;
  return false;
}

bool has_backend(const std::string& name) {
  std::istringstream backends(RECKON_BACKENDS);
  for (std::string one; backends >> one;)
    if (one == name) return true;
  return false;
}

Finding machine() {
  const auto pages = static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)),
             page = static_cast<std::int64_t>(::sysconf(_SC_PAGE_SIZE));
  return {"this machine", FindingState::good,
          fmt::format("{}, {} cores, {}", processor_name(), std::thread::hardware_concurrency(),
                      with_unit(Bytes(pages * page))),
          ""};
}

Finding configurations() {
  try {
    const ConfigPaths paths = find_configs();
    return {"models, hardware, plans", FindingState::good,
            fmt::format("{} models, {} machines, {} plans in {}", known_models(paths).size(),
                        known_hardware(paths).size(), known_plans(paths).size(), paths.configs.string()),
            ""};
  } catch (const ConfigError& error) {
    return {"models, hardware, plans", FindingState::missing, error.diagnostics().front().message,
            "cmake --install build/core, or RECKON_CONFIGS=FOLDER"};
  }
}

Finding training() {
  if (const auto program = find_rank_program())
    return {"training and calibration", FindingState::good, program->string(), ""};
  return {"training and calibration", FindingState::missing, "reckon-rank is not beside reckon",
          "./bootstrap build --preset cpu"};
}

Finding mpi() {
  if (!has_backend("mpi"))
    return {"backend mpi", FindingState::missing, "not in this build", "./bootstrap build --preset cpu"};
  if (!is_in_path("mpirun"))
    return {"backend mpi", FindingState::missing, "mpirun is not in the PATH", "apt-get install openmpi-bin"};
  return {"backend mpi", FindingState::good, "mpirun is in the PATH", ""};
}

std::int64_t graphics_devices() {
  std::error_code error;
  std::int64_t count = 0;
  for (fs::directory_iterator entry("/proc/driver/nvidia/gpus", error), end; !error && entry != end;
       entry.increment(error))
    ++count;
  return count;
}

Finding nccl() {
  const std::int64_t devices = graphics_devices();
  const std::string seen = devices == 0 ? "no NVIDIA device is seen here" : fmt::format("{} NVIDIA devices", devices);
  if (has_backend("nccl") && has_backend("threads"))
    return {"backend nccl", devices > 0 ? FindingState::good : FindingState::idle,
            seen + "; built, with training on GPUs", devices > 0 ? "" : "a machine with GPUs and their driver"};
  if (has_backend("nccl"))
    return {"backend nccl", FindingState::idle, seen + "; communication and number formats are built, training is not",
            "./bootstrap build --preset gpu"};
  return {"backend nccl", devices > 0 ? FindingState::missing : FindingState::idle, seen + "; not in this build",
          "./bootstrap build --preset gpu"};
}

Finding threads() {
  if (has_backend("threads")) return {"backend threads", FindingState::good, "ranks as threads of one process", ""};
  return {"backend threads", FindingState::missing, "not in this build", "./bootstrap build --preset cpu"};
}

Finding calibration() {
  try {
    const ConfigPaths paths = find_configs();
    const std::string reason = reason_to_calibrate(paths);
    if (reason.empty()) return {"calibration", FindingState::good, paths.local_hardware.string(), ""};
    return {"calibration", FindingState::missing, reason,
            find_rank_program() ? "reckon calibrate --quick"
                                : "./bootstrap build --preset cpu, then reckon calibrate --quick"};
  } catch (const Error& error) {
    return {"calibration", FindingState::missing, error.diagnostics().front().message, "reckon calibrate --quick"};
  }
}

Finding cache() {
  const fs::path folder = cache_folder();
  if (folder.empty())
    return {"cache folder", FindingState::missing, "neither HOME nor XDG_CACHE_HOME is set",
            "export XDG_CACHE_HOME=FOLDER"};
  fs::path there = folder;
  std::error_code error;
  while (!there.empty() && there != there.parent_path() && !fs::exists(there, error)) there = there.parent_path();
  if (::access(there.c_str(), W_OK) != 0)
    return {"cache folder", FindingState::missing, fmt::format("{} cannot be written", there.string()),
            "export XDG_CACHE_HOME=FOLDER"};
  return {"cache folder", FindingState::good, folder.string(), ""};
}

}  // namespace

ExitCode doctor_command(const Output& output) {
  const std::vector<Finding> findings = {
      {"reckon", FindingState::good, fmt::format("{}, built with {}", RECKON_VERSION, RECKON_COMPILER), ""},
      machine(),
      configurations(),
      training(),
      threads(),
      mpi(),
      nccl(),
      calibration(),
      cache()};
  output.result(output.json() ? doctor_json(findings) : doctor_text(findings, output.style()));
  return ExitCode::success;
}

}  // namespace reckon
