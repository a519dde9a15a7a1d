#include "cli/trace_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "plan/errors.h"
#include "sim/schedule_svg.h"
#include "sim/write_trace.h"

namespace reckon {

namespace {

template <class Write>
void write_file(const std::filesystem::path& file, Write&& write) {
  errno = 0;
  std::ofstream stream(file, std::ios::binary);
  if (!stream) throw RunError(fmt::format("{} cannot be written: {}", file.string(), std::strerror(errno)));
  write(stream);
  stream.close();
  if (!stream) throw RunError(fmt::format("{} cannot be written: {}", file.string(), std::strerror(errno)));
}

}  // namespace

void write_trace_file(const Simulation& simulation, const std::filesystem::path& file) {
  write_file(file, [&](std::ostream& stream) { write_trace(simulation, stream); });
}

void write_picture_file(const Simulation& simulation, const std::filesystem::path& file) {
  write_file(file, [&](std::ostream& stream) { stream << schedule_svg(simulation); });
}

}  // namespace reckon
