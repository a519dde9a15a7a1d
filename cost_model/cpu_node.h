// Ranks of a CPU machine share its cores, so that one machine has room for any number of them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plan/hardware_spec.h"

namespace reckon {

inline void make_room_for_ranks(HardwareSpec& hardware, std::int64_t ranks) {
  if (hardware.device.is_cpu && hardware.cores > 0)
    hardware.devices_per_node = std::max(hardware.devices_per_node, static_cast<int>(ranks));
}

}  // namespace reckon
