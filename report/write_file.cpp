#include "report/write_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "plan/errors.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& file, const std::error_code& error) {
  throw RunError(fmt::format("{} cannot be written: {}", file.string(), error.message()));
}

/// Nothing, or why it failed.
std::error_code write_to(const fs::path& file, const std::function<void(std::ostream&)>& write) {
  errno = 0;
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  if (stream) write(stream);
  stream.close();
  return stream ? std::error_code() : std::error_code(errno, std::generic_category());
}

/// Where the links of `file` lead.
fs::path target_of(fs::path file) {
  std::error_code error;
  for (int links = 0; fs::is_symlink(file, error); ++links) {
    if (links == 40) refuse(file, std::make_error_code(std::errc::too_many_symbolic_link_levels));
    const fs::path named = fs::read_symlink(file, error);
    if (error) refuse(file, error);
    file = named.is_absolute() ? named : file.parent_path() / named;
  }
  return file;
}

}  // namespace

void write_file(const fs::path& file, const std::function<void(std::ostream&)>& write) {
  std::error_code error;
  if (const fs::file_status kind = fs::status(file, error); fs::exists(kind) && fs::is_other(kind)) {
    if (error = write_to(file, write); error) refuse(file, error);
    return;
  }
  const fs::path target = target_of(file);
  const fs::path half = fmt::format("{}.{}.part", target.string(), ::getpid());
  error = write_to(half, write);
  if (!error) fs::rename(half, target, error);
  if (!error) return;
  std::error_code ignored;
  fs::remove(half, ignored);
  refuse(file, error);
}

void write_file(const fs::path& file, const std::string& text) {
  write_file(file, [&](std::ostream& stream) { stream << text; });
}

}  // namespace reckon
