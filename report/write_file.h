// Files that are there whole or not at all.
#pragma once

#include <filesystem>
#include <string>

namespace reckon {

/// Writes beside `file` and renames, so that nobody ever reads half of it. Throws RunError naming the file and why.
void write_file(const std::filesystem::path& file, const std::string& text);

}  // namespace reckon
