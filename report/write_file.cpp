#include "report/write_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "plan/errors.h"

namespace reckon {

void write_file(const std::filesystem::path& file, const std::string& text) {
  const std::filesystem::path half = fmt::format("{}.{}.part", file.string(), ::getpid());
  errno = 0;
  std::ofstream stream(half, std::ios::binary | std::ios::trunc);
  stream << text;
  stream.close();
  std::error_code error(errno, std::generic_category());
  if (stream) {
    std::filesystem::rename(half, file, error);
    if (!error) return;
  }
  std::error_code ignored;
  std::filesystem::remove(half, ignored);
  throw RunError(fmt::format("{} cannot be written: {}", file.string(), error.message()));
}

}  // namespace reckon
