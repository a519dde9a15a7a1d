#include "cli/output_files.h"

#include <fmt/format.h>

#include <filesystem>

#include "plan/errors.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (fs::exists(a, error) && fs::exists(b, error))
    return !fs::is_other(a, error) && fs::equivalent(a, b, error);  // a device takes both
  return fs::weakly_canonical(a, error) == fs::weakly_canonical(b, error);
}

}  // namespace

void require_distinct(const OutputFiles& files, const std::string& plan) {
  for (auto file = files.begin(); file != files.end(); ++file) {
    const auto& [option, path] = *file;
    if (path.empty()) continue;
    if (std::error_code error; fs::exists(plan, error) && is_same_file(path, plan))
      throw ConfigError(
          fmt::format("{} {} is the plan file, which would be overwritten; another file is needed", option, path));
    for (auto other = files.begin(); other != file; ++other)
      if (!other->second.empty() && is_same_file(path, other->second))
        throw ConfigError(
            fmt::format("{} and {} name the same file, {}; two files are needed", other->first, option, path));
  }
}

}  // namespace reckon
