#include "cli/trace_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "plan/errors.h"
#include "sim/schedule_svg.h"
#include "sim/write_trace.h"

namespace reckon {

namespace {

/// Beside `file` and renamed, so that nobody ever reads half of it. A trace is too long to be made in memory first.
template <class Write>
void write_whole(const std::filesystem::path& file, Write&& write) {
  const std::filesystem::path half = fmt::format("{}.{}.part", file.string(), ::getpid());
  errno = 0;
  std::ofstream stream(half, std::ios::binary);
  if (stream) write(stream);
  stream.close();
  std::error_code error(errno, std::generic_category()), ignored;
  if (stream) std::filesystem::rename(half, file, error);
  if (stream && !error) return;
  std::filesystem::remove(half, ignored);
  throw RunError(fmt::format("{} cannot be written: {}", file.string(), error.message()));
}

}  // namespace

void write_trace_file(const Simulation& simulation, const std::filesystem::path& file) {
  write_whole(file, [&](std::ostream& stream) { write_trace(simulation, stream); });
}

void write_picture_file(const Simulation& simulation, const std::filesystem::path& file) {
  write_whole(file, [&](std::ostream& stream) { stream << schedule_svg(simulation); });
}

}  // namespace reckon
