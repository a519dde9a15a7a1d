// A file opened for bounded reads at any place, by several threads at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace reckon {

/// Whether something, or a folder, has that name; false where it cannot be looked at (a name too long, no permission),
/// so that opening it says why.
bool path_exists(const std::filesystem::path& path);
bool folder_exists(const std::filesystem::path& path);

class ReadOnlyFile {
 public:
  /// Throws ConfigError when the file is missing, a directory or unreadable.
  explicit ReadOnlyFile(const std::filesystem::path& path);
  ~ReadOnlyFile();
  ReadOnlyFile(ReadOnlyFile&& other) noexcept;
  ReadOnlyFile(const ReadOnlyFile&) = delete;
  ReadOnlyFile& operator=(const ReadOnlyFile&) = delete;
  ReadOnlyFile& operator=(ReadOnlyFile&&) = delete;

  std::int64_t size() const { return size_; }
  const std::string& name() const { return name_; }
  /// Fills `into` from byte `offset`. Throws ConfigError when the file is shorter or the read fails.
  void read(std::int64_t offset, std::span<char> into) const;
  std::string read_text(std::int64_t offset, std::int64_t bytes) const;

 private:
  std::string name_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

}  // namespace reckon
