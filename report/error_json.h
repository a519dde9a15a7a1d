// Errors as the document that --json promises: schema "reckon.error/1".
#pragma once

#include <string>
#include <vector>

#include "plan/errors.h"

namespace reckon {

std::string error_json(ExitCode exit_code, const std::vector<Diagnostic>& errors);

}  // namespace reckon
