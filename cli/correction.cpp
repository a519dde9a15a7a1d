#include "cli/correction.h"

#include <fmt/format.h>

#include "cost_model/estimate_op_times.h"
#include "cost_model/step_time.h"
#include "plan/errors.h"
#include "report/format_quantity.h"
#include "report/profile_json.h"
#include "report/write_file.h"

namespace reckon {

namespace fs = std::filesystem;

namespace {

constexpr double kLeast = 0.2, kMost = 5.0;

HardwareSpec existing_hardware(const fs::path& file, const ConfigPaths& paths) {
  std::error_code error;
  if (!fs::exists(file, error))
    throw ConfigError(
        fmt::format("there is no hardware file {} to correct; `reckon calibrate` writes the one of this "
                    "machine, --out FILE names another",
                    file.string()));
  return load_hardware(file.string(), paths);
}

/// A hardware file speaks of one machine by what was measured on it, else by the device's name.
void require_same_hardware(const HardwareSpec& run, const HardwareSpec& file, const fs::path& file_name) {
  const auto refuse = [&](const std::string& what, const std::string& ran, const std::string& known) {
    throw ConfigError(fmt::format("the run was on other hardware than {} describes: its {} is '{}', the file's '{}'",
                                  file_name.string(), what, ran, known));
  };
  if (run.device.name != file.device.name) refuse("device", run.device.name, file.device.name);
  for (const char* fact : {"host", "processor", "cores"}) {
    const auto of = [fact](const HardwareSpec& hardware) {
      const auto found = hardware.provenance.find(fact);
      return found == hardware.provenance.end() ? std::string("unknown") : found->second;
    };
    if (of(run) != of(file)) refuse(fact, of(run), of(file));
  }
}

double step_seconds(Plan plan, double factor) {
  plan.hardware.time.global_factor = factor;
  return step_time(plan, estimate_op_times(plan)).total.value;
}

/// The step grows with the factor, though not in proportion: communication does not change.
double factor_for(const Plan& plan, double measured) {
  double low = kLeast, high = kMost;
  const double fastest = step_seconds(plan, low), slowest = step_seconds(plan, high);
  if (measured < fastest || measured > slowest)
    throw ConfigError(fmt::format(
        "the step took {}, and no factor between {} and {} on the device's times gives that ({} to {}): "
        "something else is wrong than the machine's speed",
        with_unit(Seconds(measured)), kLeast, kMost, with_unit(Seconds(fastest)), with_unit(Seconds(slowest))));
  for (int halving = 0; halving < 50; ++halving) {
    const double middle = 0.5 * (low + high);
    (step_seconds(plan, middle) < measured ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace

HardwareSpec store_correction(const fs::path& run_folder, const fs::path& hardware_file, const ConfigPaths& paths) {
  HardwareSpec hardware = existing_hardware(hardware_file, paths);
  const StepProfile measured = read_profile(run_folder / "measured.json", paths);
  if (measured.source != ProfileSource::measured)
    throw ConfigError(fmt::format("{} does not hold a measured profile", (run_folder / "measured.json").string()));
  require_same_hardware(measured.plan.hardware, hardware, hardware_file);
  Plan plan = measured.plan;
  plan.hardware.time = hardware.time;
  plan.hardware.device = hardware.device;
  const double uncorrected = step_seconds(plan, 1.0), seconds = measured.step.seconds.value;
  hardware.time.global_factor = factor_for(plan, seconds);
  hardware.provenance["correction"] =
      fmt::format("{:.4f} on device times, from {}: {} predicted without it, {} measured", hardware.time.global_factor,
                  fs::absolute(run_folder).lexically_normal().filename().string(), with_unit(Seconds(uncorrected)),
                  with_unit(Seconds(seconds)));
  write_file(hardware_file, write_hardware(hardware));
  return hardware;
}

HardwareSpec drop_correction(const fs::path& hardware_file, const ConfigPaths& paths) {
  HardwareSpec hardware = existing_hardware(hardware_file, paths);
  if (hardware.time.global_factor == 1.0)
    throw ConfigError(fmt::format("{} carries no correction", hardware_file.string()));
  hardware.time.global_factor = 1.0;
  hardware.provenance.erase("correction");
  write_file(hardware_file, write_hardware(hardware));
  return hardware;
}

}  // namespace reckon
