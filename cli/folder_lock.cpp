#include "cli/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "plan/errors.h"

namespace reckon {

FolderLock::FolderLock(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / ".lock";
  descriptor_ = ::open(file.c_str(), O_RDWR | O_CREAT, 0666);  // inherited by the ranks
  const auto fail = [&](const char* call) {
    throw RunError(fmt::format("{} cannot be locked: {} failed: {}", file.string(), call, std::strerror(errno)));
  };
  if (descriptor_ < 0) fail("open");
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) fail("flock");
    std::array<char, 32> holder{};
    const ssize_t bytes = ::pread(descriptor_, holder.data(), holder.size() - 1, 0);
    ::close(descriptor_);
    throw ConfigError(fmt::format("another run (process {}) is at work in {}; wait for it, or give another --out",
                                  bytes > 0 ? holder.data() : "unknown", folder.string()));
  }
  const std::string own = fmt::format("{}", ::getpid());
  if (::ftruncate(descriptor_, 0) != 0 ||
      ::pwrite(descriptor_, own.data(), own.size(), 0) != static_cast<ssize_t>(own.size()))
    fail("write");
}

FolderLock::~FolderLock() {
  ::close(descriptor_);
}

}  // namespace reckon
