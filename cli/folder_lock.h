// One run at a time in a folder.
#pragma once

#include <filesystem>

namespace reckon {

/// Held from construction on by this process and by what it starts, so also while ranks outlive it.
class FolderLock {
 public:
  /// Throws ConfigError naming the process that holds it, RunError when the folder cannot be locked.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace reckon
