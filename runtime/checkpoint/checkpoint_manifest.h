// manifest.json: what a checkpoint consists of, and where in its run it was taken. A checkpoint is complete when its
// folder has its name (step-...), and sound when every file is as the manifest says.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "runtime/checkpoint/durable_file.h"

namespace reckon {

struct CheckpointManifest {
  std::int64_t step = 0;            // optimizer steps that have been made; the next one has this number, counted from 0
  std::uint64_t seed = 1;           // of data order: with the step it says which tokens come next
  std::int64_t world_size = 1;      // ranks that wrote it
  std::vector<std::string> states;  // what is kept of every weight: "weight", "first_moment", ...
  std::map<std::string, FileSeal> files;  // by name: plan.yaml and one safetensors file a rank
};

std::string manifest_json(const CheckpointManifest& manifest);

/// Throws ConfigError for a manifest that is missing or altered.
CheckpointManifest read_manifest(const std::filesystem::path& checkpoint);

}  // namespace reckon
