#include "cli/trace_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "plan/errors.h"
#include "sim/write_trace.h"

namespace reckon {

void write_trace_file(const Simulation& simulation, const std::filesystem::path& file) {
  errno = 0;
  std::ofstream stream(file, std::ios::binary);
  if (!stream) throw RunError(fmt::format("{} cannot be written: {}", file.string(), std::strerror(errno)));
  write_trace(simulation, stream);
  stream.close();
  if (!stream) throw RunError(fmt::format("{} cannot be written: {}", file.string(), std::strerror(errno)));
}

}  // namespace reckon
