// Files and folders that survive a crash of the machine once a call has returned.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "runtime/checkpoint/xxh64.h"

namespace reckon {

/// What a file must hold, to be compared later.
struct FileSeal {
  std::int64_t bytes = 0;
  std::uint64_t checksum = 0;  // XXH64

  bool operator==(const FileSeal&) const = default;
};

/// A new file that is written once, from its start to its end. All failures are RunErrors naming file and reason.
class DurableFile {
 public:
  explicit DurableFile(const std::filesystem::path& path);
  ~DurableFile();  // removes the file unless finish() has succeeded
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  void append(std::span<const char> bytes);
  /// On the disk when it returns.
  FileSeal finish();

 private:
  [[noreturn]] void fail(const char* call) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  bool finished_ = false;
  std::int64_t bytes_ = 0;
  Xxh64 checksum_;
};

/// Replaces `file` by one with this text: at any moment the old or the new one is there whole.
void replace_durably(const std::filesystem::path& file, std::string_view text);
/// Waits until what was written to `file` is on the disk. Throws RunError.
void sync_file(const std::filesystem::path& file);
/// Makes what was created, renamed and removed in a folder last.
void sync_folder(const std::filesystem::path& folder);
/// Renames within one folder, for good. Throws RunError.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

/// Of a file as it is now. Throws ConfigError when it cannot be read.
FileSeal seal_of(const std::filesystem::path& file);

}  // namespace reckon
