#include "cli/commands/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/calibration.h"
#include "cli/correction.h"
#include "cli/find_configs.h"
#include "cli/load_checked_plan.h"
#include "report/write_catalogue.h"

namespace reckon {

namespace {

/// A quick calibration into the usual place that need not be repeated.
bool kept_one_is_good(const CalibrateOptions& options, const ConfigPaths& paths) {
  if (!options.quick || options.force || !options.out.empty() || options.ranks != 0) return false;
  if (options.plans.empty()) return reason_to_calibrate(paths).empty();
  return std::ranges::all_of(options.plans, [&](const std::string& plan) {
    return reason_to_calibrate_for(find_plan(plan, paths), options.overrides, paths).empty();
  });
}

}  // namespace

ExitCode calibrate_command(const CalibrateOptions& options, const Output& output) {
  if (options.plans.empty() && !options.overrides.empty())
    throw ConfigError(fmt::format("{} overrides a plan, but --plan names none", options.overrides.front()));
  if (!options.from_run.empty() && (!options.plans.empty() || options.ranks != 0))
    throw ConfigError("--from-run takes the correction of a run and measures nothing: leave --plan and --ranks out");
  const ConfigPaths paths = find_configs();
  const std::filesystem::path file = options.out.empty() ? paths.local_hardware : std::filesystem::path(options.out);
  HardwareSpec hardware;
  if (!options.from_run.empty() || options.without_correction) {
    hardware =
        options.without_correction ? drop_correction(file, paths) : store_correction(options.from_run, file, paths);
    output.note(options.without_correction
                    ? fmt::format("the correction is removed from {}", file.string())
                    : fmt::format("stored in {}: {}", file.string(), hardware.provenance.at("correction")));
  } else if (kept_one_is_good(options, paths)) {
    hardware = load_hardware("local", paths);
    output.note(fmt::format("already measured, kept in {} (--force measures again)", paths.local_hardware.string()));
  } else {
    CalibrationOptions request{options.quick, {}, options.overrides, file, options.ranks};
    for (const std::string& plan : options.plans) request.plans.push_back(find_plan(plan, paths));
    hardware = calibrate(request, output);
    output.note(fmt::format("written to {}", request.out.string()));
  }
  output.result(output.json() ? hardware_list_json({hardware}) : hardware_text(hardware, output.style()));
  return ExitCode::success;
}

}  // namespace reckon
