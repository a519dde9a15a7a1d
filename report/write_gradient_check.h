// The gradient-error report of `run --check-gradients` as JSON (schema "reckon.gradients/1"), back, and as tables.
#pragma once

#include <filesystem>
#include <string>

#include "plan/gradient_check.h"
#include "report/table.h"

namespace reckon {

std::string gradient_check_json(const GradientCheck& check);
/// Throws ConfigError naming file and place.
GradientCheck read_gradient_check(const std::filesystem::path& file);
std::string gradient_check_text(const GradientCheck& check, const TextStyle& style);

}  // namespace reckon
