#include "runtime/checkpoint/hugging_face_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "plan/errors.h"
#include "runtime/checkpoint/check_checkpoint.h"
#include "runtime/checkpoint/json_text.h"

namespace reckon {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kMostIndexBytes = 64 << 20;
constexpr const char *kEmbedding = "model.embed_tokens.weight", *kHead = "lm_head.weight";

/// Families whose weights have LLaMA's names and enter the same formulas.
constexpr std::array kFamilies = {"llama", "mistral", "qwen2"};

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw ConfigError({{what, file, 0, 0, {}}});
}

}  // namespace

bool has_hugging_face_weights(const ModelSpec& model) {
  return std::ranges::find(kFamilies, model.family) != kFamilies.end();
}

HuggingFaceWeights::HuggingFaceWeights(const fs::path& path) : path_(path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) add_file(path);
  else if (fs::exists(path / "model.safetensors", error)) add_file(path / "model.safetensors");
  else if (fs::exists(path / "model.safetensors.index.json", error)) add_indexed(path / "model.safetensors.index.json");
  else refuse(path.string(), "holds neither model.safetensors nor model.safetensors.index.json");
}

void HuggingFaceWeights::add_file(const fs::path& file) {
  files_.push_back(std::make_unique<SafetensorsFile>(file));
  for (const StoredTensor& tensor : files_.back()->header().tensors)
    if (!places_.try_emplace(tensor.name, Place{files_.back().get(), &tensor}).second)
      refuse(file.string(),
             fmt::format("holds {}, which another file of {} holds too", shown_name(tensor.name), path_.string()));
}

void HuggingFaceWeights::add_indexed(const fs::path& index) {
  const ReadOnlyFile file(index);
  if (file.size() > kMostIndexBytes)
    refuse(file.name(), fmt::format("is too large for an index: {} bytes", file.size()));
  const Json json = parse_json(file.read_text(0, file.size()), file.name());
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
    refuse(file.name(), "has no weight_map from tensors to files");
  std::set<std::string> names;
  for (const auto& [tensor, place] : json["weight_map"].items()) {
    const std::string name = place.is_string() ? place.get<std::string>() : "";
    if (name.empty() || fs::path(name).filename() != name || name == "." || name == "..")
      refuse(file.name(),
             fmt::format("places {} in {}, which is no file of its folder", shown_name(tensor), shown_name(name)));
    names.insert(name);
  }
  for (const std::string& name : names) add_file(index.parent_path() / name);
  for (const auto& [tensor, place] : json["weight_map"].items()) {
    const auto found = places_.find(tensor);
    const std::string name = place.get<std::string>();
    if (found == places_.end() || fs::path(found->second.file->name()).filename() != name)
      refuse(file.name(), fmt::format("places {} in {}, which does not hold it", shown_name(tensor), shown_name(name)));
  }
}

bool HuggingFaceWeights::equal(const Place& a, const Place& b) const {
  constexpr std::int64_t kChunk = 1 << 18;
  if (a.tensor->shape != b.tensor->shape) return false;
  std::vector<float> values_a, values_b;
  for (std::int64_t at = 0; at < a.tensor->elements(); at += kChunk) {
    const auto count = static_cast<std::size_t>(std::min(kChunk, a.tensor->elements() - at));
    values_a.resize(count);
    values_b.resize(count);
    a.file->read(*a.tensor, at, values_a);
    b.file->read(*b.tensor, at, values_b);
    if (values_a != values_b) return false;
  }
  return true;
}

void HuggingFaceWeights::require_model(const ModelSpec& model) const {
  if (!has_hugging_face_weights(model))
    throw ConfigError({{fmt::format("weights of family {} have other names or another meaning in Hugging Face files; "
                                    "llama, mistral and qwen2 can be read and written",
                                    model.family),
                        {},
                        0,
                        0,
                        "train.initial_weights"}});
  TensorShapes found;
  std::vector<Diagnostic> wrong_types;
  for (const auto& [name, place] : places_) {
    if (name.ends_with(".rotary_emb.inv_freq")) continue;
    if (!is_floating_type(place.tensor->type))
      wrong_types.push_back(
          {fmt::format("has {} as {}; weights are F64, F32, F16 or BF16", shown_name(name), place.tensor->type),
           place.file->name(),
           0,
           0,
           {}});
    found[name] = place.tensor->shape;
  }
  const auto head = places_.find(kHead), embedding = places_.find(kEmbedding);
  if (model.tied_head && head != places_.end() && embedding != places_.end() && wrong_types.empty()) {
    if (!equal(head->second, embedding->second))
      refuse(path_.string(), "has an lm_head.weight that differs from the embedding, but the model ties them");
    found.erase(kHead);
  }
  std::vector<Diagnostic> wrong = compare_shapes(parameter_shapes(model), found, path_.string());
  wrong.insert(wrong.end(), wrong_types.begin(), wrong_types.end());
  if (!wrong.empty()) throw ConfigError(std::move(wrong));
}

void HuggingFaceWeights::read(const std::string& state, const std::string& name, const TensorRegion& region,
                              std::span<float> into) const {
  const auto found = places_.find(name);
  if (state != "weight" || found == places_.end())
    refuse(path_.string(), fmt::format("holds no {} of {}", state, shown_name(name)));
  for (const TensorRun& run : runs_of(region))
    found->second.file->read(
        *found->second.tensor, run.in_whole,
        into.subspan(static_cast<std::size_t>(run.in_region), static_cast<std::size_t>(run.count)));
}

}  // namespace reckon
