// Errors as the document that --json promises: schema "reckon.error/1".
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "plan/errors.h"

namespace reckon {

std::string error_json(ExitCode exit_code, const std::vector<Diagnostic>& errors);

/// The error in such a document. Throws ConfigError when `file` is none.
Error read_error(const std::filesystem::path& file);

}  // namespace reckon
