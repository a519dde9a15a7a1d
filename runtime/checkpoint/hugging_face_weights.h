// Weights as the Hugging Face library writes them: one safetensors file or several with an index, named as LLaMA's.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plan/model_spec.h"
#include "runtime/checkpoint/safetensors_file.h"
#include "runtime/checkpoint/weight_source.h"

namespace reckon {

class HuggingFaceWeights final : public WeightSource {
 public:
  /// `path` is a safetensors file or a folder with model.safetensors or model.safetensors.index.json. Throws
  /// ConfigError when a file is missing or not sound, and for an index that leads out of its folder or disagrees with
  /// its files.
  explicit HuggingFaceWeights(const std::filesystem::path& path);

  /// Throws ConfigError listing every tensor of the model that is missing or has another shape or a type that is no
  /// floating point, and every one that the model does not know. A tied model's lm_head.weight may be there if it
  /// equals the embedding; tables of rotary frequencies are computed, so theirs are passed over.
  void require_model(const ModelSpec& model) const;

  void read(const std::string& state, const std::string& name, const TensorRegion& region,
            std::span<float> into) const override;

 private:
  struct Place {
    const SafetensorsFile* file;
    const StoredTensor* tensor;
  };
  void add_file(const std::filesystem::path& file);
  void add_indexed(const std::filesystem::path& index);
  bool equal(const Place& a, const Place& b) const;

  std::filesystem::path path_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, Place> places_;
};

/// Whether weights of this family mean the same in the Hugging Face library as here.
bool has_hugging_face_weights(const ModelSpec& model);

}  // namespace reckon
