// The files that a command is asked to write.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace reckon {

/// Option and path; an empty path is none.
using OutputFiles = std::vector<std::pair<std::string, std::string>>;

/// Throws ConfigError where two of them are the same file, or one is the plan file itself.
void require_distinct(const OutputFiles& files, const std::string& plan);

}  // namespace reckon
