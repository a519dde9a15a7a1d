#include "runtime/checkpoint/export_hugging_face.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "plan/errors.h"
#include "plan/hugging_face_config.h"
#include "plan/load_plan.h"
#include "runtime/checkpoint/check_checkpoint.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/checkpoint/hugging_face_weights.h"
#include "runtime/checkpoint/json_text.h"
#include "runtime/checkpoint/safetensors_writer.h"

namespace reckon {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kChunk = 1 << 22;  // elements copied at a time

/// Tensors of each file, in the order of their names; a file holds at least one.
std::vector<SafetensorsHeader> divide(const TensorShapes& shapes, const std::string& type, std::int64_t most_bytes) {
  std::vector<SafetensorsHeader> files;
  std::int64_t bytes = 0;
  for (const auto& [name, shape] : shapes) {
    const StoredTensor tensor{name, type, shape, 0, 0};
    const std::int64_t size = tensor.elements() * type_bytes(type);
    if (files.empty() || bytes + size > most_bytes) {
      files.emplace_back().metadata["format"] = "pt";
      bytes = 0;
    }
    files.back().tensors.push_back(tensor);
    bytes += size;
  }
  return files;
}

std::string file_name(std::size_t index, std::size_t count) {
  return count == 1 ? "model.safetensors" : fmt::format("model-{:05}-of-{:05}.safetensors", index + 1, count);
}

void copy(const WeightSource& source, const StoredTensor& tensor, SafetensorsWriter& writer) {
  const std::int64_t columns = tensor.shape.size() > 1 ? tensor.shape[1] : 1;
  std::vector<float> values;
  for (std::int64_t done = 0; done < tensor.elements(); done += kChunk) {
    values.resize(static_cast<std::size_t>(std::min(kChunk, tensor.elements() - done)));
    source.read("weight", tensor.name,
                {columns, 0, 0, tensor.shape[0], columns, done, static_cast<std::int64_t>(values.size())}, values);
    writer.append(values);
  }
}

/// An empty folder, removed again unless the work in it is complete.
class NewFolder {
 public:
  explicit NewFolder(const fs::path& path) : path_(path) {
    std::error_code error;
    was_there_ = fs::exists(path, error);
    if (was_there_ && !fs::is_empty(path, error))
      throw ConfigError(fmt::format("{} is not empty; the export needs a folder of its own", path.string()));
    fs::create_directories(path, error);
    if (error) throw RunError(fmt::format("{} cannot be made: {}", path.string(), error.message()));
  }
  ~NewFolder() {
    if (complete_) return;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(path_, ignored)) fs::remove_all(entry.path(), ignored);
    if (!was_there_) fs::remove(path_, ignored);
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  void complete() { complete_ = true; }

 private:
  fs::path path_;
  bool was_there_ = false, complete_ = false;
};

Json rope_scaling_json(const ModelSpec& model) {
  Json scaling = {{"rope_type", model.rope_scaling}, {"factor", model.rope_scaling_factor}};
  if (model.rope_scaling == "llama3")
    scaling.update({{"low_freq_factor", model.rope_low_frequency_factor},
                    {"high_freq_factor", model.rope_high_frequency_factor},
                    {"original_max_position_embeddings", model.rope_original_positions}});
  return scaling;
}

}  // namespace

std::string hugging_face_config_json(const ModelSpec& model, std::int64_t positions, const std::string& type) {
  const std::string architecture = model.family == "qwen2"     ? "Qwen2ForCausalLM"
                                   : model.family == "mistral" ? "MistralForCausalLM"
                                                               : "LlamaForCausalLM";
  Json config = {{"architectures", {architecture}},
                 {"model_type", model.family},
                 {"vocab_size", model.vocabulary},
                 {"hidden_size", model.hidden},
                 {"intermediate_size", model.ffn_hidden},
                 {"num_hidden_layers", model.layers},
                 {"num_attention_heads", model.heads},
                 {"num_key_value_heads", model.kv_heads},
                 {"head_dim", model.head_dim},
                 {"hidden_act", "silu"},
                 {"max_position_embeddings", positions},
                 {"rms_norm_eps", model.norm_epsilon},
                 {"rope_theta", model.rope_theta},
                 {"tie_word_embeddings", model.tied_head},
                 {"torch_dtype", type == "BF16" ? "bfloat16" : "float32"},
                 {"use_cache", true}};
  if (model.family == "llama") {
    config["attention_bias"] = model.qkv_bias;
    config["mlp_bias"] = model.ffn_bias;
  }
  if (model.family == "mistral")
    config["sliding_window"] = model.sliding_window > 0 ? Json(model.sliding_window) : Json(nullptr);
  if (!model.rope_scaling.empty()) config["rope_scaling"] = rope_scaling_json(model);
  const std::string text = config.dump(2) + "\n";
  // Whatever this file cannot say (another norm, biases elsewhere) shows when it is read back.
  const ModelSpec back = read_hugging_face_config(parse_yaml(text, "config.json"), "config.json");
  const auto shape = [](const ModelSpec& m) {
    return std::tuple(parameter_shapes(m), m.norm, m.norm_epsilon, m.activation, m.gated_ffn, m.position, m.rope_theta,
                      m.rope_fraction, m.rope_scaling, m.rope_scaling_factor, m.sliding_window, m.qk_norm,
                      m.parallel_block);
  };
  if (!has_hugging_face_weights(model) || shape(back) != shape(model))
    throw ConfigError(
        fmt::format("the model {} of family {} cannot be written as a config.json of llama, mistral or qwen2",
                    model.name, model.family));
  return text;
}

HuggingFaceExport export_hugging_face(const fs::path& place, const fs::path& out, std::int64_t most_file_bytes) {
  const CheckpointReader checkpoint(find_checkpoint(place));
  checkpoint.verify();
  const Plan plan = load_plan(checkpoint.plan_file(), {}, {});
  const TensorShapes shapes = parameter_shapes(plan.model);
  auto wrong = compare_shapes(shapes, checkpoint.shapes(), checkpoint.folder().string());
  if (!wrong.empty()) throw ConfigError(std::move(wrong));
  HuggingFaceExport result{checkpoint.manifest().step, static_cast<std::int64_t>(shapes.size()), 0, 0,
                           plan.precision.compute == NumberFormat::bf16 ? "BF16" : "F32"};
  const std::string config = hugging_face_config_json(plan.model, plan.batch.sequence_length, result.type);

  NewFolder folder(out);
  const std::vector<SafetensorsHeader> files = divide(shapes, result.type, most_file_bytes);
  result.files = static_cast<std::int64_t>(files.size());
  Json index;
  for (std::size_t i = 0; i < files.size(); ++i) {
    SafetensorsWriter writer(out / file_name(i, files.size()), files[i]);
    for (const StoredTensor& tensor : files[i].tensors) {
      copy(checkpoint, tensor, writer);
      index["weight_map"][tensor.name] = file_name(i, files.size());
      result.bytes += tensor.elements() * type_bytes(tensor.type);
    }
    writer.finish();
  }
  index["metadata"]["total_size"] = result.bytes;
  if (files.size() > 1) replace_durably(out / "model.safetensors.index.json", index.dump(2) + "\n");
  replace_durably(out / "config.json", config);
  folder.complete();
  return result;
}

}  // namespace reckon
