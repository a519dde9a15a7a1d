// Plan files, model files and hardware files -> checked values. Every error names file, line, column and key.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/errors.h"
#include "plan/plan.h"

namespace reckon {

/// Where named models and hardware are looked up ("llama2-13b" -> DIR/models/llama2-13b.yaml).
struct ConfigPaths {
  std::filesystem::path configs;         // the configs folder of the repository or installation
  std::filesystem::path local_hardware;  // the calibrated file of this machine, for `hardware: local`
};

/// Reads a plan and applies `overrides` ("parallel.tensor=4", last one wins). Throws ConfigError listing everything
/// that is wrong with the text; rules between values are check_plan's.
Plan load_plan(const std::filesystem::path& file, const std::vector<std::string>& overrides, const ConfigPaths& paths);
Plan parse_plan(std::string_view yaml, const std::string& file_name, const std::vector<std::string>& overrides,
                const ConfigPaths& paths);

/// The resolved plan as YAML that load_plan reads back to the same plan (model and hardware written out whole).
std::string write_plan(const Plan& plan);

/// YAML of configs/models or a Hugging Face config.json; a name is looked up in `paths`.
ModelSpec load_model(const std::string& name_or_path, const ConfigPaths& paths);
HardwareSpec load_hardware(const std::string& name_or_path, const ConfigPaths& paths);

/// The same by name or alias only; nothing where none is called so.
std::optional<HardwareSpec> find_hardware(const std::string& name, const ConfigPaths& paths);
std::string write_hardware(const HardwareSpec& hardware);

/// Names in configs/models and configs/hardware, sorted.
std::vector<std::string> known_models(const ConfigPaths& paths);
std::vector<std::string> known_hardware(const ConfigPaths& paths);

/// Every broken rule with the nearest legal values; empty = the plan is legal.
std::vector<Diagnostic> check_plan(const Plan& plan);
/// What a legal plan should still be told: options without effect, groups that span nodes. Sentences.
std::vector<std::string> plan_warnings(const Plan& plan);

}  // namespace reckon
