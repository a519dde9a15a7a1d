// A checkpoint as a folder that the Hugging Face library loads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "plan/model_spec.h"

namespace reckon {

struct HuggingFaceExport {
  std::int64_t step = 0;  // of the checkpoint
  std::int64_t tensors = 0, bytes = 0, files = 0;
  std::string type;  // of the weights: F32, or BF16 where the run computed in BF16
};

/// Writes config.json and model.safetensors (beyond 5 GB several files and their index) into `out`, which must be new
/// or empty; nothing stays there when it fails. `place` is a run's folder or a checkpoint (find_checkpoint). Throws
/// ConfigError for a checkpoint that is not sound or a model that a config.json of llama, mistral or qwen2 cannot
/// express, RunError when `out` cannot be written.
HuggingFaceExport export_hugging_face(const std::filesystem::path& place, const std::filesystem::path& out,
                                      std::int64_t most_file_bytes = 5'000'000'000);

/// The model's config.json. `positions` is the longest row it was trained on, `type` a safetensors type.
std::string hugging_face_config_json(const ModelSpec& model, std::int64_t positions, const std::string& type);

}  // namespace reckon
