#include "cli/trace_file.h"

#include "report/write_file.h"
#include "sim/schedule_svg.h"
#include "sim/write_trace.h"

namespace reckon {

void write_trace_file(const Simulation& simulation, const std::filesystem::path& file) {
  write_file(file, [&](std::ostream& stream) { write_trace(simulation, stream); });
}

void write_picture_file(const Simulation& simulation, const std::filesystem::path& file) {
  write_file(file, schedule_svg(simulation));
}

}  // namespace reckon
