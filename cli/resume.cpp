#include "cli/resume.h"

#include <fmt/format.h>

#include <string_view>

#include "plan/changed_keys.h"
#include "plan/errors.h"
#include "plan/load_plan.h"
#include "runtime/checkpoint/check_checkpoint.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/checkpoint_reader.h"

namespace reckon {

namespace fs = std::filesystem;

namespace {

/// Losses after a resume are those of the undisturbed run only while these stay.
bool decides_course(std::string_view key) {
  for (const std::string_view prefix : {"batch.sequence_length", "batch.global_batch", "documents.", "optimizer.",
                                        "train.seed", "train.data", "train.tokenizer"})
    if (key.starts_with(prefix)) return true;
  return false;
}

fs::path run_folder_of(const fs::path& checkpoint) {
  const fs::path folder = fs::absolute(checkpoint).lexically_normal();
  const fs::path above = folder.has_filename() ? folder.parent_path() : folder.parent_path().parent_path();
  return above.filename() == "checkpoints" ? above.parent_path() : fs::path();
}

}  // namespace

ResumePoint find_resume_point(const std::string& place, const Plan& plan) {
  if (place.empty()) return {};
  const fs::path checkpoint = find_checkpoint(place);
  const CheckpointReader reader(checkpoint);
  require_resumable(reader, plan);
  return {checkpoint, run_folder_of(checkpoint), reader.manifest().step};
}

std::vector<std::string> changed_course(const ResumePoint& from, const Plan& plan) {
  if (from.checkpoint.empty()) return {};
  const Plan before = load_plan(from.checkpoint / "plan.yaml", {}, {});
  std::vector<std::string> changes;
  for (const ChangedKey& changed : changed_keys(before, plan))
    if (decides_course(changed.key))
      changes.push_back(fmt::format("{} was '{}' and is '{}'", changed.key, changed.first, changed.second));
  return changes;
}

void require_nothing_lost(const fs::path& folder, const ResumePoint& from) {
  const fs::path checkpoints = folder / "checkpoints";
  if (complete_checkpoints(checkpoints).empty()) return;
  if (from.checkpoint.empty())
    throw ConfigError(
        fmt::format("{} holds the checkpoints of an earlier run; --resume {} goes on from them, another "
                    "--out keeps them",
                    folder.string(), folder.string()));
  std::error_code error;
  if (!fs::equivalent(find_checkpoint(folder), from.checkpoint, error))
    throw ConfigError(fmt::format("{} holds checkpoints that going on from {} would lose; give another --out",
                                  folder.string(), from.checkpoint.string()));
}

}  // namespace reckon
