// Files that are there whole or not at all.
#pragma once

#include <filesystem>
#include <functional>
#include <ostream>
#include <string>

namespace reckon {

/// Writes beside `file` and renames, so that nobody ever reads half of it; a link stays one and what it names is
/// replaced. What is no file (a pipe, a device) is written to as it is. Throws RunError naming the file and why.
void write_file(const std::filesystem::path& file, const std::string& text);

/// The same for what is too long to be made in memory first.
void write_file(const std::filesystem::path& file, const std::function<void(std::ostream&)>& write);

}  // namespace reckon
