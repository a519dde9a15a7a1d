#include "cli/commands/calibrate.h"

#include <fmt/format.h>

#include "cli/calibration.h"
#include "cli/find_configs.h"
#include "cli/load_checked_plan.h"
#include "report/write_catalogue.h"

namespace reckon {

namespace {

/// A quick calibration into the usual place that need not be repeated.
bool kept_one_is_good(const CalibrateOptions& options, const ConfigPaths& paths) {
  if (!options.quick || options.force || !options.out.empty() || options.ranks != 0) return false;
  if (options.plan.empty()) return reason_to_calibrate(paths).empty();
  return reason_to_calibrate_for(find_plan(options.plan, paths), options.overrides, paths).empty();
}

}  // namespace

ExitCode calibrate_command(const CalibrateOptions& options, const Output& output) {
  if (options.plan.empty() && !options.overrides.empty())
    throw ConfigError(fmt::format("{} overrides a plan, but --plan names none", options.overrides.front()));
  const ConfigPaths paths = find_configs();
  HardwareSpec hardware;
  if (kept_one_is_good(options, paths)) {
    hardware = load_hardware("local", paths);
    output.note(fmt::format("already measured, kept in {} (--force measures again)", paths.local_hardware.string()));
  } else {
    CalibrationOptions request{options.quick, {}, options.overrides, options.out, options.ranks};
    if (!options.plan.empty()) request.plan = find_plan(options.plan, paths);
    if (request.out.empty()) request.out = paths.local_hardware;
    hardware = calibrate(request, output);
    output.note(fmt::format("written to {}", request.out.string()));
  }
  output.result(output.json() ? hardware_list_json({hardware}) : hardware_text(hardware, output.style()));
  return ExitCode::success;
}

}  // namespace reckon
