#include "cli/calibration.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <thread>

#include "cli/calibration_ranks.h"
#include "cli/find_configs.h"
#include "cli/launcher.h"
#include "cli/load_checked_plan.h"
#include "cli/processor_name.h"
#include "cli/rank_end.h"
#include "cli/rank_program.h"
#include "cost_model/state_cost.h"
#include "plan/layer_ops.h"
#include "plan/step_documents.h"
#include "plan/storage_passes.h"
#include "plan/yaml_document.h"
#include "report/write_file.h"

namespace reckon {

namespace fs = std::filesystem;

namespace {

constexpr int kDaysFresh = 30;

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
                                              {"processor", processor_name()},
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

std::string changed_fact(const HardwareSpec& hardware) {
  for (const auto& [fact, value] : machine_facts()) {
    const auto known = hardware.provenance.find(fact);
    if (known == hardware.provenance.end() || known->second != value) return fact;
  }
  return {};
}

/// The file at `path`, or nothing where there is none or another version wrote it.
std::optional<HardwareSpec> readable_hardware(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  try {
    return load_hardware(path.string(), find_configs());
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

/// Lets a plan for `hardware: local` be read before there is a measured file; none of its figures is used.
std::string unmeasured_hardware() {
  HardwareSpec hardware;
  hardware.name = "local";
  hardware.source = "stands in until this machine is measured";
  hardware.device.name = "processor";
  hardware.device.is_cpu = true;
  hardware.device.peak = {{NumberFormat::fp32, FlopsPerSecond(1e11)}, {NumberFormat::bf16, FlopsPerSecond(2e11)}};
  hardware.device.memory = Bytes(std::int64_t{1} << 36);
  hardware.device.memory_bandwidth = BytesPerSecond(1e10);
  hardware.intra_node = hardware.inter_node = {BytesPerSecond(1e10), Seconds(5e-6), false};
  return write_hardware(hardware);
}

/// Makes the folder of a hardware file.
void prepare_folder_of(const fs::path& file) {
  if (file.empty()) throw ConfigError("neither XDG_CACHE_HOME nor HOME is set; name the file with --out FILE");
  std::error_code error;
  fs::create_directories(fs::absolute(file).parent_path(), error);
  if (error) throw ConfigError(fmt::format("{} cannot be made: {}", file.parent_path().string(), error.message()));
}

/// A hardware file in place of the one that is still to be measured.
class StandIn {
 public:
  explicit StandIn(const fs::path& measured)
      : file_(fmt::format("{}.{}.stand-in.yaml", measured.string(), ::getpid())) {
    write_file(file_.path, unmeasured_hardware());
  }

  /// The override that makes a plan use it.
  std::string key() const { return "hardware=" + file_.path.string(); }

 private:
  const TemporaryFile file_;
};

/// One word for the shapes of all ops of a plan (FNV-1a), by which a hardware file remembers that it measured them.
/// Other documents of the same source need no new measurement: attention's cost is carried over to their pairs.
std::string shapes_of(const Plan& plan) {
  std::uint64_t hash = 14695981039346656037u;
  const auto add = [&hash](std::string_view text) {
    for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211u;
  };
  const AttentionWork work = planned_attention_work(plan);
  for (const Section section : {Section::embedding, Section::dense_layer, Section::head})
    for (const Op& op : section_ops(plan, section, work).ops)
      add(fmt::format("{} {};", op.name, op.kind == OpKind::attention ? attention_key(op.attention) : shape_key(op)));
  add(fmt::format("{} {} {} {}", name_of(plan.precision.compute), plan.world_size(), plan.documents.source,
                  static_cast<int>(plan.documents.attention)));
  for (const NumberFormat format : storage_use(plan).formats) add(name_of(format));
  add(narrow_update(plan));
  return fmt::format("{:016x}", hash);
}

template <class Sample, class Same>
void keep_others(std::vector<Sample>& samples, const std::vector<Sample>& earlier, Same same) {
  const std::size_t measured = samples.size();
  for (const Sample& old : earlier) {
    const auto end = samples.begin() + static_cast<std::ptrdiff_t>(measured);
    if (std::none_of(samples.begin(), end, [&](const Sample& sample) { return same(sample, old); }))
      samples.push_back(old);
  }
}

/// Adds the samples of other shapes that an earlier calibration of this machine and build took.
void keep_earlier_samples(HardwareSpec& hardware, const fs::path& file) {
  const auto earlier = readable_hardware(file);
  if (!earlier || !changed_fact(*earlier).empty()) return;
  keep_others(hardware.time.op_samples, earlier->time.op_samples, [](const OpSample& a, const OpSample& b) {
    return a.op == b.op && a.shape == b.shape && a.format == b.format;
  });
  keep_others(hardware.time.gemm_samples, earlier->time.gemm_samples, [](const GemmSample& a, const GemmSample& b) {
    return a.batch == b.batch && a.m == b.m && a.n == b.n && a.k == b.k && a.pass == b.pass && a.format == b.format;
  });
  keep_others(hardware.time.collectives, earlier->time.collectives, [](const CollectiveFit& a, const CollectiveFit& b) {
    return a.collective == b.collective && a.ranks_per_node == b.ranks_per_node && a.nodes == b.nodes &&
           a.siblings == b.siblings;
  });
  const auto shapes = earlier->provenance.find("shapes");
  if (shapes != earlier->provenance.end()) hardware.provenance["shapes"] = shapes->second;
}

}  // namespace

std::string reason_to_calibrate(const ConfigPaths& paths) {
  std::error_code error;
  if (!fs::exists(paths.local_hardware, error)) return "this machine was not measured yet";
  const auto hardware = readable_hardware(paths.local_hardware);
  if (!hardware) return "the kept file cannot be read any more";  // written by another version: no reason to bother
  const auto& provenance = hardware->provenance;
  if (const std::string fact = changed_fact(*hardware); !fact.empty()) return fmt::format("its {} has changed", fact);
  const auto date = provenance.find("date");
  const double age = date == provenance.end() ? 1e9 : days_since(date->second);
  return age > kDaysFresh ? fmt::format("it was measured more than {} days ago", kDaysFresh) : "";
}

std::string reason_to_calibrate_for(const fs::path& plan, const std::vector<std::string>& overrides,
                                    const ConfigPaths& paths) {
  if (std::string reason = reason_to_calibrate(paths); !reason.empty()) return reason;
  const Plan loaded = load_checked_plan(plan.string(), overrides, paths);
  const auto& provenance = loaded.hardware.provenance;
  const auto shapes = provenance.find("shapes");
  const bool known = shapes != provenance.end() && shapes->second.find(shapes_of(loaded)) != std::string::npos;
  return known ? "" : "the shapes of this plan were not measured yet";
}

namespace {

std::vector<Plan> loaded_plans(const CalibrationOptions& options, const std::vector<std::string>& overrides) {
  std::vector<Plan> plans;
  for (const std::string& plan : options.plans) plans.push_back(load_checked_plan(plan, overrides, find_configs()));
  return plans;
}

/// 1, 5 and 15 minutes, as the kernel counts waiting and running tasks.
std::string load_average() {
  double loads[3] = {0, 0, 0};
  if (::getloadavg(loads, 3) != 3) return "unknown";
  return fmt::format("{:.2f} {:.2f} {:.2f}", loads[0], loads[1], loads[2]);
}

void warn_if_noisy(const HardwareSpec& hardware, const Output& output) {
  const auto found = hardware.provenance.find("noisy_visits");
  if (found == hardware.provenance.end() || found->second.starts_with("0 ")) return;
  output.warning(fmt::format(
      "the machine was not quiet: in {} visits other programs took more than 5 % of it or it ran 7 % slower "
      "than its best, also when repeated (others took {} on average); measure again when it is",
      found->second, hardware.provenance.at("others")));
}

}  // namespace

/// Over MPI, as runs are: moving bytes between processes takes longer than between threads of one.
HardwareSpec calibrate(const CalibrationOptions& options, const Output& output) {
  const fs::path program = require_rank_program("calibration");
  prepare_folder_of(options.out);
  const TemporaryFile measured(fmt::format("{}.{}.measured.yaml", options.out.string(), ::getpid()));
  std::vector<std::string> command = {program, "calibrate", "--out", measured.path};
  if (options.quick) command.emplace_back("--quick");
  if (options.ranks > 0) command.insert(command.end(), {"--ranks", fmt::format("{}", options.ranks)});
  for (const std::string& plan : options.plans) command.insert(command.end(), {"--plan", plan});
  auto overrides = options.overrides;
  std::optional<StandIn> stand_in;
  const bool for_local = std::ranges::any_of(
      options.plans, [&](const std::string& plan) { return uses_local_hardware(plan, options.overrides); });
  if (for_local) overrides.push_back(stand_in.emplace(options.out).key());
  command.insert(command.end(), overrides.begin(), overrides.end());

  output.note("measuring this machine" + std::string(options.quick ? " (quick)" : ""));
  const std::string load = load_average();
  const std::vector<Plan> plans = loaded_plans(options, overrides);
  std::vector<std::int64_t> worlds;
  for (const Plan& plan : plans) worlds.push_back(plan.world_size());
  const std::int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  const std::int64_t ranks = calibration_ranks(worlds, cores, options.ranks).started;
  const Backend backend = ranks > 1 && can_start_mpi() ? Backend::mpi : Backend::threads;
  command.insert(command.end(), {"--backend", backend == Backend::mpi ? "mpi" : "threads"});
  const ProcessEnd end = run_process(rank_processes(backend, ranks, command));
  if (end.exit_code != 0 || end.interrupted_by) throw_rank_failure("calibration", end, {});
  HardwareSpec hardware = load_hardware(measured.path.string(), find_configs());
  for (const auto& [fact, value] : machine_facts()) hardware.provenance[fact] = value;
  hardware.provenance["date"] = today();
  hardware.provenance["load"] = load;
  warn_if_noisy(hardware, output);
  keep_earlier_samples(hardware, options.out);
  for (const Plan& plan : plans) {
    std::string& shapes = hardware.provenance["shapes"];
    const std::string own = shapes_of(plan);
    if (shapes.find(own) == std::string::npos) shapes += (shapes.empty() ? "" : " ") + own;
  }
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
                         const Output& output, const std::function<void(const Plan&)>& refuse) {
  if (!uses_local_hardware(plan, overrides)) return;
  const std::string reason = reason_to_calibrate_for(plan, overrides, paths);
  if (reason.empty()) return;
  prepare_folder_of(paths.local_hardware);
  auto unmeasured = overrides;
  const StandIn stand_in(paths.local_hardware);
  unmeasured.push_back(stand_in.key());
  refuse(load_checked_plan(plan.string(), unmeasured, paths));
  output.note(fmt::format("calibrating first: {}", reason));
  calibrate({.quick = true, .plans = {plan.string()}, .overrides = overrides, .out = paths.local_hardware}, output);
}

}  // namespace reckon
