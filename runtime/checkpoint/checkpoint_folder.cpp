#include "runtime/checkpoint/checkpoint_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <system_error>

#include "plan/errors.h"
#include "plan/read_only_file.h"

namespace reckon {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kComplete = "step-", kUnfinished = "unfinished-";
constexpr std::int64_t kLongestName = 64;

std::string name_of_step(std::int64_t step) {
  return fmt::format("{}{:08}", kComplete, step);
}

std::vector<fs::path> folders_with(const fs::path& folder, std::string_view prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().filename().string().starts_with(prefix)) found.push_back(entry->path());
  std::ranges::sort(found);
  return found;
}

bool is_checkpoint(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "manifest.json", error);
}

/// Renamed first, so that what is half removed is never taken for complete; not to the name of one being written.
void remove_checkpoint(const fs::path& checkpoints, const fs::path& checkpoint) {
  const fs::path leaving = checkpoints / fmt::format("{}removal-{}", kUnfinished, checkpoint.filename().string());
  rename_durably(checkpoint, leaving);
  std::error_code ignored;  // what stays has no meaning and goes with the next one
  fs::remove_all(leaving, ignored);
}

fs::path named_by_latest(const fs::path& checkpoints) {
  const ReadOnlyFile file(checkpoints / "latest");
  const std::string text = file.read_text(0, std::min(file.size(), kLongestName));
  const std::string name = text.substr(0, text.find('\n'));
  const bool plain = name.starts_with(kComplete) && name.find('/') == std::string::npos;
  if (plain && is_checkpoint(checkpoints / name)) return checkpoints / name;
  throw ConfigError({{"names no checkpoint that is there; give the folder of one to --resume", file.name(), 0, 0, {}}});
}

}  // namespace

std::string rank_file(std::int64_t rank) {
  return fmt::format("rank-{:05}.safetensors", rank);
}

fs::path unfinished_checkpoint(const fs::path& checkpoints, std::int64_t step) {
  return checkpoints / fmt::format("{}{}", kUnfinished, name_of_step(step));
}

void begin_checkpoint(const fs::path& checkpoints, std::int64_t step) {
  const fs::path unfinished = unfinished_checkpoint(checkpoints, step);
  remove_unfinished(checkpoints);
  std::error_code error;
  fs::create_directories(unfinished, error);
  if (error)
    throw RunError(fmt::format("the checkpoint folder {} cannot be made: {}", unfinished.string(), error.message()));
}

void complete_checkpoint(const fs::path& checkpoints, const CheckpointManifest& manifest) {
  const fs::path unfinished = unfinished_checkpoint(checkpoints, manifest.step);
  replace_durably(unfinished / "manifest.json", manifest_json(manifest));
  const fs::path complete = checkpoints / name_of_step(manifest.step);
  if (fs::exists(complete)) remove_checkpoint(checkpoints, complete);  // of a run that ended before naming it
  rename_durably(unfinished, complete);
}

void make_latest(const fs::path& checkpoints, std::int64_t step, std::int64_t keep) {
  const fs::path latest = checkpoints / name_of_step(step);
  replace_durably(checkpoints / "latest", latest.filename().string() + "\n");
  std::vector<fs::path> older = complete_checkpoints(checkpoints);
  std::erase_if(older, [&](const fs::path& checkpoint) { return checkpoint >= latest; });
  for (std::size_t i = 0; keep > 0 && i + static_cast<std::size_t>(keep) <= older.size(); ++i)
    remove_checkpoint(checkpoints, older[i]);
}

void remove_unfinished(const fs::path& checkpoints) noexcept {
  try {
    std::error_code ignored;
    for (const fs::path& folder : folders_with(checkpoints, kUnfinished)) fs::remove_all(folder, ignored);
    for (const fs::path& file : folders_with(checkpoints, "latest."))  // a pointer that was being replaced
      fs::remove(file, ignored);
  } catch (const std::exception&) {  // no memory for the names: they stay
  }
}

std::vector<fs::path> complete_checkpoints(const fs::path& checkpoints) {
  std::vector<fs::path> all = folders_with(checkpoints, kComplete);
  std::erase_if(all, [](const fs::path& folder) { return !is_checkpoint(folder); });
  return all;
}

fs::path find_checkpoint(const fs::path& place) {
  if (is_checkpoint(place)) return place;
  for (const fs::path& checkpoints : {place / "checkpoints", place}) {
    std::error_code error;
    if (fs::is_regular_file(checkpoints / "latest", error)) return named_by_latest(checkpoints);
    if (const std::vector<fs::path> complete = complete_checkpoints(checkpoints); !complete.empty())
      return complete.back();
  }
  throw ConfigError(fmt::format(
      "{} holds no checkpoint to resume from; it should be the folder of a run with train.checkpoint_every, or of one "
      "checkpoint",
      place.string()));
}

}  // namespace reckon
