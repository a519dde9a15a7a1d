#include "cli/calibration.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <map>
#include <thread>

#include "cli/find_configs.h"
#include "cli/launcher.h"
#include "cli/rank_end.h"
#include "cli/rank_program.h"
#include "plan/yaml_document.h"
#include "report/write_file.h"

namespace reckon {

namespace fs = std::filesystem;

namespace {

constexpr int kDaysFresh = 30;

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

/// Size and time of the program that measures: a rebuilt one may have other kernels or another libtorch.
std::string build_of(const fs::path& program) {
  std::error_code error;
  const auto written = fs::last_write_time(program, error).time_since_epoch();
  return fmt::format("{} bytes, {}", fs::file_size(program, error),
                     std::chrono::duration_cast<std::chrono::seconds>(written).count());
}

std::string today() {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(std::chrono::system_clock::now()));
}

/// What a calibration is valid for.
std::map<std::string, std::string> machine_facts() {
  utsname names{};
  ::uname(&names);
  std::map<std::string, std::string> facts = {{"host", names.nodename},
                                              {"kernel", names.release},
                                              {"processor", processor()},
                                              {"cores", fmt::format("{}", std::thread::hardware_concurrency())}};
  if (const auto program = find_rank_program()) facts["reckon_rank"] = build_of(*program);
  return facts;
}

/// Days since a date as `today` writes it; a large number for anything else.
double days_since(const std::string& date) {
  std::tm when{};
  if (::strptime(date.c_str(), "%Y-%m-%d %H:%M:%S", &when) == nullptr) return 1e9;
  return std::difftime(std::time(nullptr), ::timegm(&when)) / 86400.0;
}

struct TemporaryFile {
  explicit TemporaryFile(fs::path file) : path(std::move(file)) {}
  ~TemporaryFile() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const fs::path path;
};

}  // namespace

std::string reason_to_calibrate(const ConfigPaths& paths) {
  std::error_code error;
  if (!fs::exists(paths.local_hardware, error)) return "this machine was not measured yet";
  HardwareSpec hardware;
  try {
    hardware = load_hardware("local", paths);
  } catch (const ConfigError&) {  // written by another version: no reason to bother the user
    return "the kept file cannot be read any more";
  }
  const auto& provenance = hardware.provenance;
  for (const auto& [fact, value] : machine_facts()) {
    const auto known = provenance.find(fact);
    if (known == provenance.end() || known->second != value) return fmt::format("its {} has changed", fact);
  }
  const auto date = provenance.find("date");
  const double age = date == provenance.end() ? 1e9 : days_since(date->second);
  return age > kDaysFresh ? fmt::format("it was measured more than {} days ago", kDaysFresh) : "";
}

HardwareSpec calibrate(const CalibrationOptions& options, const Output& output) {
  const fs::path program = require_rank_program("calibration");
  if (options.out.empty()) throw ConfigError("neither XDG_CACHE_HOME nor HOME is set; name the file with --out FILE");
  std::error_code error;
  fs::create_directories(fs::absolute(options.out).parent_path(), error);
  if (error)
    throw ConfigError(fmt::format("{} cannot be made: {}", options.out.parent_path().string(), error.message()));

  const std::int64_t ranks = options.ranks > 0 ? options.ranks : std::max(1u, std::thread::hardware_concurrency());
  const TemporaryFile measured(fmt::format("{}.{}.measured.yaml", options.out.string(), ::getpid()));
  std::vector<std::string> command = {program, "calibrate",  "--ranks", fmt::format("{}", ranks),
                                      "--out", measured.path};
  if (options.quick) command.emplace_back("--quick");
  if (!options.plan.empty()) command.insert(command.end(), {"--plan", options.plan});
  command.insert(command.end(), options.overrides.begin(), options.overrides.end());

  output.note("measuring this machine" + std::string(options.quick ? " (quick)" : ""));
  const ProcessEnd end = run_process(rank_processes(Backend::threads, ranks, command));
  if (end.exit_code != 0 || end.interrupted_by) throw_rank_failure("calibration", end, {});
  HardwareSpec hardware = load_hardware(measured.path.string(), find_configs());
  for (const auto& [fact, value] : machine_facts()) hardware.provenance[fact] = value;
  hardware.provenance["date"] = today();
  write_file(options.out, write_hardware(hardware));
  return hardware;
}

bool uses_local_hardware(const fs::path& plan, const std::vector<std::string>& overrides) {
  for (auto text = overrides.rbegin(); text != overrides.rend(); ++text)
    if (text->starts_with("hardware=")) return *text == "hardware=local";
  const YamlValue document = parse_yaml(read_text_file(plan), plan.string());
  const YamlValue* hardware = document.find("hardware");
  return hardware && hardware->kind == YamlValue::Kind::scalar && hardware->text == "local";
}

void calibrate_if_needed(const fs::path& plan, const std::vector<std::string>& overrides, const ConfigPaths& paths,
                         const Output& output) {
  if (!uses_local_hardware(plan, overrides)) return;
  const std::string reason = reason_to_calibrate(paths);
  if (reason.empty()) return;
  output.note(fmt::format("calibrating first: {}", reason));
  calibrate({.quick = true, .plan = {}, .overrides = {}, .out = paths.local_hardware}, output);
}

}  // namespace reckon
