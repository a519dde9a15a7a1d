#include "cli/hardware_notes.h"

#include <fmt/format.h>

#include "cli/calibration.h"
#include "cli/find_configs.h"

namespace reckon {

void tell_about_hardware(const Plan& plan, const std::string& name, const std::vector<std::string>& overrides,
                         const ConfigPaths& paths, const Output& output) {
  const HardwareSpec& hardware = plan.hardware;
  if (uses_local_hardware(find_plan(name, paths), overrides))
    if (const std::string reason = reason_to_calibrate(paths); !reason.empty())
      output.warning(
          fmt::format("the prediction stands on a stale measurement of this machine: {}; `reckon calibrate` "
                      "measures it again",
                      reason));
  if (hardware.time.global_factor == 1.0) return;
  const auto found = hardware.provenance.find("correction");
  output.note(fmt::format("a stored correction acts: {}",
                          found == hardware.provenance.end()
                              ? fmt::format("{:.4f} on device times", hardware.time.global_factor)
                              : found->second));
}

}  // namespace reckon
