// The folder of a run's checkpoints. While one is being written its folder has another name; renaming makes it
// complete, and only then `latest` names it and older ones go. So whatever stops the run, the last complete one is
// intact.
//
//   checkpoints/latest              one line: step-00000050
//   checkpoints/step-00000050/      manifest.json, plan.yaml, rank-00000.safetensors, ...
//   checkpoints/unfinished-...      being written or removed
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/checkpoint/checkpoint_manifest.h"

namespace reckon {

/// Where the files of the checkpoint of `step` are written.
std::filesystem::path unfinished_checkpoint(const std::filesystem::path& checkpoints, std::int64_t step);

/// Makes that folder, empty. Throws RunError.
void begin_checkpoint(const std::filesystem::path& checkpoints, std::int64_t step);

/// Completes it: manifest, then its name. On the disk when it returns; the checkpoint before is still the latest.
/// Throws RunError.
void complete_checkpoint(const std::filesystem::path& checkpoints, const CheckpointManifest& manifest);

/// Makes the complete checkpoint of `step` the latest; then, of it and those before it, removes all but the newest
/// `keep` (0 = keep all). On the disk when it returns. Throws RunError; the checkpoint before is then still the latest.
void make_latest(const std::filesystem::path& checkpoints, std::int64_t step, std::int64_t keep);

/// What was being written when a run ended. Never throws: there may be nothing.
void remove_unfinished(const std::filesystem::path& checkpoints) noexcept;

/// Complete ones, oldest first.
std::vector<std::filesystem::path> complete_checkpoints(const std::filesystem::path& checkpoints);

/// The checkpoint that `place` means: a checkpoint itself, or the latest of a run's folder or its checkpoints folder;
/// where a run ended before it named its first one, the newest complete one. Throws ConfigError when there is none.
std::filesystem::path find_checkpoint(const std::filesystem::path& place);

std::string rank_file(std::int64_t rank);

}  // namespace reckon
