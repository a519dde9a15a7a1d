// StepProfile <-> JSON, schema "reckon.profile/1". Bytes and seconds, unrounded; undefined numbers are null.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "plan/load_plan.h"
#include "plan/step_profile.h"

namespace reckon {

std::string_view name_of(ProfileSource source);

/// One JSON document with a final newline. read_profile gives the same profile back.
std::string profile_json(const StepProfile& profile);

/// Throws ConfigError naming file and key when the file is not such a document.
StepProfile read_profile(const std::filesystem::path& file, const ConfigPaths& paths = {});

}  // namespace reckon
