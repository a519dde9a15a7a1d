// The trace of a simulated step as a file.
#pragma once

#include <filesystem>

#include "sim/simulate_step.h"

namespace reckon {

/// For ui.perfetto.dev. Throws RunError naming the file.
void write_trace_file(const Simulation& simulation, const std::filesystem::path& file);
/// The same for the picture of schedule and memory.
void write_picture_file(const Simulation& simulation, const std::filesystem::path& file);

}  // namespace reckon
