#include "plan/read_only_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "plan/errors.h"

namespace reckon {

namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& message) {
  throw ConfigError({{message, name, 0, 0, {}}});
}

}  // namespace

bool path_exists(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

bool folder_exists(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

ReadOnlyFile::ReadOnlyFile(const std::filesystem::path& path) : name_(path.string()) {
  // Not waiting for the writer of a named pipe, which is refused below.
  descriptor_ = ::open(name_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) refuse(name_, fmt::format("cannot be opened: {}", std::strerror(errno)));
  struct stat status {};
  const bool regular = ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
  if (!regular) {
    ::close(descriptor_);
    refuse(name_, "is not a regular file");
  }
  size_ = status.st_size;
}

ReadOnlyFile::~ReadOnlyFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

ReadOnlyFile::ReadOnlyFile(ReadOnlyFile&& other) noexcept
    : name_(std::move(other.name_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

void ReadOnlyFile::read(std::int64_t offset, std::span<char> into) const {
  const auto bytes = static_cast<std::int64_t>(into.size());
  if (offset < 0 || offset > size_ || bytes > size_ - offset)
    refuse(name_, fmt::format("{} bytes from byte {} are needed; the file has {}", bytes, offset, size_));
  while (!into.empty()) {
    const ssize_t got = ::pread(descriptor_, into.data(), into.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      refuse(name_,
             got < 0 ? fmt::format("cannot be read: {}", std::strerror(errno)) : "became shorter while being read");
    into = into.subspan(static_cast<std::size_t>(got));
    offset += got;
  }
}

std::string ReadOnlyFile::read_text(std::int64_t offset, std::int64_t bytes) const {
  std::string text(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0)), '\0');
  read(offset, text);
  return text;
}

}  // namespace reckon
