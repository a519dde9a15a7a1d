// Weights in the layout of the Hugging Face library: read from one file or several, written from a checkpoint.
#include <gtest/gtest.h>

#include <cmath>

#include "plan/errors.h"
#include "plan/load_plan.h"
#include "runtime/checkpoint/check_checkpoint.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/export_hugging_face.h"
#include "runtime/checkpoint/hugging_face_weights.h"
#include "runtime/checkpoint/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;

Plan tiny_plan() {
  return load_plan(RECKON_SOURCE_DIR "/tests/golden/train.yaml", {}, {RECKON_SOURCE_DIR "/configs", {}});
}

/// Element `i` of a tensor, different for all tensors and exact in BF16.
float value(const std::string& name, std::int64_t i) {
  return static_cast<float>(static_cast<std::int64_t>(name.size()) * 3 + i % 64);
}

std::vector<float> values(const std::string& name, std::int64_t count) {
  std::vector<float> all;
  for (std::int64_t i = 0; i < count; ++i) all.push_back(value(name, i));
  return all;
}

/// A file with these tensors.
void write_weights(const fs::path& file, const TensorShapes& shapes, const std::string& type = "F32") {
  SafetensorsHeader header;
  for (const auto& [name, shape] : shapes) header.tensors.push_back({name, type, shape, 0, 0});
  SafetensorsWriter writer(file, header);
  for (const StoredTensor& tensor : header.tensors) writer.append(values(tensor.name, tensor.elements()));
  writer.finish();
}

/// A run's folder with one checkpoint of that plan.
void write_checkpoint(const fs::path& run, const Plan& plan) {
  const fs::path checkpoints = run / "checkpoints";
  begin_checkpoint(checkpoints, 7);
  const fs::path folder = unfinished_checkpoint(checkpoints, 7);
  std::vector<StoredPart> parts;
  for (const auto& [name, shape] : parameter_shapes(plan.model)) {
    const std::int64_t columns = shape.size() > 1 ? shape[1] : 1;
    parts.push_back({name, shape, {columns, 0, 0, shape[0], columns, 0, shape[0] * columns}});
  }
  SafetensorsWriter writer(folder / rank_file(0), rank_file_header(parts, {"weight"}));
  for (const StoredPart& part : parts) writer.append(values(part.parameter, part.region.count));
  CheckpointManifest manifest{7, 1, 1, {"weight"}, {{rank_file(0), writer.finish()}}};
  DurableFile text(folder / "plan.yaml");
  text.append(write_plan(plan));
  manifest.files["plan.yaml"] = text.finish();
  complete_checkpoint(checkpoints, manifest);
  make_latest(checkpoints, manifest.step, 2);
}

std::string refusal(const fs::path& path, const ModelSpec& model) {
  try {
    HuggingFaceWeights(path).require_model(model);
    return "";
  } catch (const ConfigError& error) {
    std::string all;
    for (const Diagnostic& diagnostic : error.diagnostics()) all += to_string(diagnostic) + "\n";
    return all;
  }
}

void expect_phrase(const std::string& text, const std::string& phrase) {
  EXPECT_NE(text.find(phrase), std::string::npos) << "missing: " << phrase << "\n" << text;
}

TEST(HuggingFaceExport, GivesBackEveryWeightInOneFileOrSeveral) {
  const TemporaryFolder folder;
  const Plan plan = tiny_plan();
  write_checkpoint(folder.path() / "run", plan);
  for (const std::int64_t most_bytes : {std::int64_t{1} << 40, std::int64_t{100000}}) {
    const fs::path out = folder.path() / std::to_string(most_bytes);
    const HuggingFaceExport done = export_hugging_face(folder.path() / "run", out, most_bytes);
    EXPECT_EQ(done.step, 7);
    EXPECT_EQ(done.type, "F32");
    EXPECT_EQ(done.files == 1, fs::exists(out / "model.safetensors"));
    const HuggingFaceWeights weights(out);
    weights.require_model(plan.model);
    for (const auto& [name, shape] : parameter_shapes(plan.model)) {
      const std::int64_t columns = shape.size() > 1 ? shape[1] : 1, count = shape[0] * columns;
      std::vector<float> got(static_cast<std::size_t>(count));
      weights.read("weight", name, {columns, 0, 0, shape[0], columns, 0, count}, got);
      EXPECT_EQ(got, values(name, count)) << name;
    }
    EXPECT_EQ(parameter_shapes(load_model((out / "config.json").string(), {})), parameter_shapes(plan.model));
  }
  EXPECT_THROW(export_hugging_face(folder.path() / "run", folder.path()), ConfigError) << "the folder is not empty";
}

TEST(HuggingFaceExport, WhatAConfigCannotSayIsRefusedAndLeavesNothing) {
  const TemporaryFolder folder;
  Plan plan = tiny_plan();
  plan.model.qkv_bias = true;  // LLaMA's file has one key for these and the projection's
  write_checkpoint(folder.path() / "run", plan);
  EXPECT_THROW(export_hugging_face(folder.path() / "run", folder.path() / "out"), ConfigError);
  EXPECT_FALSE(fs::exists(folder.path() / "out"));
  ModelSpec model = tiny_plan().model;
  EXPECT_NO_THROW(hugging_face_config_json(model, 64, "F32"));
  model.norm = Norm::layer_norm;
  EXPECT_THROW(hugging_face_config_json(model, 64, "F32"), ConfigError);
  model = tiny_plan().model;
  model.attention_sinks = true;
  EXPECT_THROW(hugging_face_config_json(model, 64, "F32"), ConfigError);
}

TEST(HuggingFaceWeights, EverythingThatDoesNotFitIsListed) {
  const TemporaryFolder folder;
  const ModelSpec model = tiny_plan().model;
  TensorShapes shapes = parameter_shapes(model);
  const fs::path file = folder.path() / "model.safetensors";
  write_weights(file, shapes, "BF16");
  EXPECT_EQ(refusal(folder.path(), model), "");
  EXPECT_EQ(refusal(file, model), "");
  shapes["model.layers.0.self_attn.rotary_emb.inv_freq"] = {8};  // of older files; computed here
  write_weights(file, shapes);
  EXPECT_EQ(refusal(file, model), "");
  shapes.erase("model.norm.weight");
  shapes["model.layers.0.mlp.down_proj.weight"] = {176, 64};
  shapes["model.layers.0.self_attn.q_proj.bias"] = {64};
  write_weights(file, shapes);
  const std::string text = refusal(file, model);
  expect_phrase(text, "lacks model.norm.weight [64]");
  expect_phrase(text, "has model.layers.0.mlp.down_proj.weight as [176, 64], the model needs [64, 176]");
  expect_phrase(text, "has \"model.layers.0.self_attn.q_proj.bias\" [64], which the model does not know");
}

TEST(HuggingFaceWeights, ATiedHeadMayBeThereIfItIsTheEmbedding) {
  const TemporaryFolder folder;
  ModelSpec model = tiny_plan().model;
  const TensorShapes untied = parameter_shapes(model);
  model.tied_head = true;
  write_weights(folder.path() / "tied", parameter_shapes(model));
  EXPECT_EQ(refusal(folder.path() / "tied", model), "");
  write_weights(folder.path() / "untied", untied);  // another name, so other values
  expect_phrase(refusal(folder.path() / "untied", model), "differs from the embedding");
}

TEST(HuggingFaceWeights, AnIndexThatLeadsAwayOrLiesIsRefused) {
  const TemporaryFolder folder;
  const ModelSpec model = tiny_plan().model;
  const auto with_index = [&](const std::string& map) {
    folder.write("model.safetensors.index.json", "{\"weight_map\": " + map + "}");
    return refusal(folder.path(), model);
  };
  expect_phrase(refusal(folder.path(), model), "holds neither model.safetensors nor");
  expect_phrase(with_index(R"({"a": "../../etc/passwd"})"), "which is no file of its folder");
  expect_phrase(with_index(R"({"a": ".."})"), "which is no file of its folder");
  expect_phrase(with_index(R"({"a": 5})"), "which is no file of its folder");
  expect_phrase(with_index("[]"), "has no weight_map");
  expect_phrase(with_index(R"({"a": "missing.safetensors"})"), "missing.safetensors");
  write_weights(folder.path() / "one.safetensors", {{"b", {2}}});
  expect_phrase(with_index(R"({"a": "one.safetensors"})"), "which does not hold it");
  write_weights(folder.path() / "two.safetensors", {{"b", {2}}});
  expect_phrase(with_index(R"({"b": "one.safetensors", "c": "two.safetensors"})"), "which another file");
}

TEST(HuggingFaceWeights, FamiliesWithOtherFormulasAreRefused) {
  const TemporaryFolder folder;
  ModelSpec model = tiny_plan().model;
  write_weights(folder.path() / "file", parameter_shapes(model));
  model.family = "gemma";
  expect_phrase(refusal(folder.path() / "file", model), "family gemma");
}

}  // namespace
}  // namespace reckon
