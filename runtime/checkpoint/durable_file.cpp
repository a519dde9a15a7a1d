#include "runtime/checkpoint/durable_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "plan/errors.h"
#include "plan/read_only_file.h"

namespace reckon {
namespace {

constexpr std::int64_t kChunk = 1 << 20;

[[noreturn]] void refuse(const std::filesystem::path& path, const char* call, int error) {
  throw RunError(fmt::format("{} cannot be written: {} failed: {}", path.string(), call, std::strerror(error)));
}

void sync(const std::filesystem::path& path, int flags) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC);
  if (descriptor < 0) refuse(path, "open", errno);
  const int result = ::fsync(descriptor), error = errno;
  ::close(descriptor);
  if (result != 0 && error != EINVAL) refuse(path, "fsync", error);  // EINVAL: this file system syncs no folders
}

}  // namespace

DurableFile::DurableFile(const std::filesystem::path& path) : path_(path) {
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) refuse(path, "open", errno);
}

DurableFile::~DurableFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!finished_) ::unlink(path_.c_str());
}

void DurableFile::fail(const char* call) const {
  refuse(path_, call, errno);
}

void DurableFile::append(std::span<const char> bytes) {
  checksum_.update(bytes);
  bytes_ += static_cast<std::int64_t>(bytes.size());
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

FileSeal DurableFile::finish() {
  if (::fsync(descriptor_) != 0) fail("fsync");
  if (::close(std::exchange(descriptor_, -1)) != 0) fail("close");
  finished_ = true;
  return {bytes_, checksum_.digest()};
}

void replace_durably(const std::filesystem::path& file, std::string_view text) {
  const std::filesystem::path half = fmt::format("{}.{}.part", file.string(), ::getpid());
  DurableFile out(half);
  out.append(text);
  out.finish();
  try {
    rename_durably(half, file);
  } catch (const RunError&) {
    ::unlink(half.c_str());
    throw;
  }
}

void sync_file(const std::filesystem::path& file) {
  sync(file, O_RDONLY);
}

void sync_folder(const std::filesystem::path& folder) {
  sync(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
}

void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) refuse(to, "rename", errno);
  sync_folder(to.parent_path());
}

FileSeal seal_of(const std::filesystem::path& path) {
  const ReadOnlyFile file(path);
  Xxh64 checksum;
  for (std::int64_t at = 0; at < file.size(); at += kChunk)
    checksum.update(file.read_text(at, std::min(kChunk, file.size() - at)));
  return {file.size(), checksum.digest()};
}

}  // namespace reckon
