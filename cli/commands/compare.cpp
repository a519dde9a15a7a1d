#include "cli/commands/compare.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/find_configs.h"
#include "cli/parse_tolerance.h"
#include "report/compare_profiles.h"
#include "report/format_quantity.h"
#include "report/profile_json.h"
#include "report/write_console.h"

namespace reckon {

namespace fs = std::filesystem;

namespace {

/// "0.1" or "QUANTITY=0.1".
Tolerance parse_tolerance(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos) return {"", parse_share(text, text)};
  return {text.substr(0, equals), parse_share(text.substr(equals + 1), text)};
}

ProfileComparison compare_folder(const fs::path& folder, const ConfigPaths& paths) {
  std::error_code error;
  if (!fs::exists(folder / "measured.json", error))
    throw ConfigError(
        fmt::format("{} has no measured.json; is it the folder of a finished `reckon run`?", folder.string()));
  std::optional<StepProfile> simulated;
  if (fs::exists(folder / "simulated.json", error)) simulated = read_profile(folder / "simulated.json", paths);
  const StepProfile predicted = read_profile(folder / "predicted.json", paths);
  return compare_profiles(predicted, simulated, read_profile(folder / "measured.json", paths));
}

ProfileComparison compare_files(const std::vector<std::string>& files, const ConfigPaths& paths) {
  if (files.size() != 2) {
    throw ConfigError(fmt::format("compare takes the folder of a run or two profiles, found {} profile{}", files.size(),
                                  files.size() == 1 ? "" : "s"));
  }
  const StepProfile predicted = read_profile(files[0], paths);
  return compare_profiles(predicted, std::nullopt, read_profile(files[1], paths));
}

}  // namespace

ExitCode compare_command(const CompareOptions& options, const Output& output) {
  std::vector<Tolerance> tolerances;
  for (const std::string& text : options.tolerances) tolerances.push_back(parse_tolerance(text));
  const ConfigPaths paths = find_configs();
  std::error_code error;
  const bool folder = options.profiles.size() == 1 && fs::is_directory(options.profiles[0], error);
  const ProfileComparison comparison =
      folder ? compare_folder(options.profiles[0], paths) : compare_files(options.profiles, paths);
  const auto beyond = rows_beyond(comparison, tolerances);
  output.result(output.json() ? comparison_json(comparison) : comparison_text(comparison, output.style()));
  for (const ComparisonRow& row : beyond)
    output.note(fmt::format("beyond the tolerance: {} ({})", row.quantity,
                            row.error ? signed_percent(*row.error) : "only one side has it"));
  return beyond.empty() ? ExitCode::success : ExitCode::disagreement;
}

}  // namespace reckon
