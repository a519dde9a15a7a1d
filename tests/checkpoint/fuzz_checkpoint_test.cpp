// Mutated checkpoints and weights of others: read well, or refused by a ConfigError. Checksums and sizes are made right
// again after a mutation, as an enemy would.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "plan/little_endian.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/checkpoint/hugging_face_weights.h"
#include "runtime/checkpoint/safetensors_writer.h"
#include "runtime/checkpoint/xxh64.h"
#include "tests/support/mutate.h"
#include "tests/support/temporary_folder.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const Mutator kMutator({"\"shape\":[", "\"data_offsets\":[0,0]", "\"F64\"", "\"BF16\"", "{\"dtype\":", "weight/", "@1",
                        "[[2,3],[0,2,0,3],0]", "4294967296,4294967296,4"});

std::string bytes_of(const fs::path& file) {
  const ReadOnlyFile open(file);
  return open.read_text(0, open.size());
}

/// The header's length is that of the header, whatever was done to it.
std::string with_true_length(std::string header, const std::string& data) {
  std::string text;
  append_little_endian(text, static_cast<std::uint64_t>(header.size()));
  return text + header + data;
}

void read_all(const SafetensorsFile& file) {
  for (const StoredTensor& tensor : file.header().tensors) {
    ASSERT_LE(tensor.elements(), 1000) << "more than the file can hold";
    std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
    if (is_floating_type(tensor.type)) file.read(tensor, 0, values);
  }
}

TEST(FuzzCheckpoint, SafetensorsFiles) {
  const TemporaryFolder folder;
  SafetensorsHeader header;
  header.metadata["format"] = "pt";
  header.tensors = {{"one", "F32", {2, 3}, 0, 0}, {"two", "BF16", {3}, 0, 0}};
  SafetensorsWriter writer(folder.path() / "x", header);
  writer.append(std::vector<float>(6));
  writer.append(std::vector<float>(3));
  writer.finish();
  const std::string good = bytes_of(folder.path() / "x"), data(6 * 4 + 3 * 2, '\0');
  const std::string own_header = good.substr(8, good.size() - 8 - data.size());
  fuzz({good, own_header}, kMutator, 4000, [&](const std::string& text, Random&) {
    const bool is_header = !text.starts_with(good.substr(0, 8));
    read_all(SafetensorsFile(folder.write("mutant", is_header ? with_true_length(text, data) : text)));
  });
}

/// One rank's file with both states of "w" (2 x 3), a plan, and a manifest of both.
class OneRankCheckpoint {
 public:
  OneRankCheckpoint() {
    const TensorRegion whole{3, 0, 0, 2, 3, 0, 6};
    SafetensorsWriter writer(folder_.path() / rank_file(0),
                             rank_file_header({{"w", {2, 3}, whole}}, {"weight", "moment"}));
    for (const float state : {1.0f, 2.0f}) writer.append(std::vector<float>(6, state));
    manifest_ = {50, 5, 1, {"weight", "moment"}, {{rank_file(0), writer.finish()}}};
    folder_.write("plan.yaml", "reckon: 1\n");
    manifest_.files["plan.yaml"] = seal_of(folder_.path() / "plan.yaml");
    folder_.write("manifest.json", manifest_json(manifest_));
  }

  std::string text_of(const std::string& name) const { return bytes_of(folder_.path() / name); }
  void put(const std::string& name, const std::string& text) { folder_.write(name, text); }
  /// The manifest tells the truth about the rank's file.
  void seal() {
    manifest_.files[rank_file(0)] = seal_of(folder_.path() / rank_file(0));
    put("manifest.json", manifest_json(manifest_));
  }

  void read() const {
    const CheckpointReader reader(folder_.path());
    EXPECT_GT(reader.manifest().step, 0);
    reader.verify();
    for (const char* state : {"weight", "moment"}) {
      std::vector<float> whole(6);
      reader.read(state, "w", {3, 0, 0, 2, 3, 0, 6}, whole);
    }
  }

 private:
  TemporaryFolder folder_;
  CheckpointManifest manifest_;
};

TEST(FuzzCheckpoint, RankFiles) {
  OneRankCheckpoint checkpoint;
  const std::string good = checkpoint.text_of(rank_file(0)), data(12 * 4, '\1');
  fuzz({good.substr(8, good.size() - 8 - data.size())}, kMutator, 4000, [&](const std::string& text, Random&) {
    checkpoint.put(rank_file(0), with_true_length(text, data));
    checkpoint.seal();
    checkpoint.read();
  });
}

std::string sealed(const std::string& manifest) {
  json document = json::parse(manifest, nullptr, false);
  if (!document.is_object() || !document.contains("content")) return manifest;
  Xxh64 checksum;
  checksum.update(document["content"].dump());
  document["xxh64_of_content"] = fmt::format("{:016x}", checksum.digest());
  return document.dump();
}

TEST(FuzzCheckpoint, Manifests) {
  OneRankCheckpoint checkpoint;
  fuzz({checkpoint.text_of("manifest.json")}, kMutator, 4000, [&](const std::string& text, Random& random) {
    checkpoint.put("manifest.json", random() % 4 == 0 ? text : sealed(text));
    checkpoint.read();
  });
}

TEST(FuzzCheckpoint, IndexesOfHuggingFaceWeights) {
  const TemporaryFolder folder;
  for (const char* name : {"a.safetensors", "b.safetensors"}) {
    SafetensorsHeader header;
    header.tensors = {{std::string("tensor.") + name[0], "F32", {2}, 0, 0}};
    SafetensorsWriter writer(folder.path() / name, header);
    writer.append(std::vector<float>(2));
    writer.finish();
  }
  const std::string good = R"({"metadata": {"total_size": 16},
 "weight_map": {"tensor.a": "a.safetensors",
                "tensor.b": "b.safetensors"}})";
  fuzz({good}, kMutator, 3000, [&](const std::string& text, Random&) {
    folder.write("model.safetensors.index.json", text);
    const HuggingFaceWeights weights(folder.path());
  });
}

TEST(UntrustedNames, LeadOutOfNoFolder) {
  const TemporaryFolder outside;
  SafetensorsHeader header;
  header.tensors = {{"t", "F32", {1}, 0, 0}};
  SafetensorsWriter writer(outside.path() / "secret.safetensors", header);
  writer.append(std::vector<float>(1));
  const FileSeal seal = writer.finish();
  fs::create_directory(outside.path() / "inside");
  const std::vector<std::string> names = {"../secret.safetensors",
                                          "inside/../../secret.safetensors",
                                          (outside.path() / "secret.safetensors").string(),
                                          "..",
                                          ".",
                                          ""};
  for (const std::string& name : names) {
    outside.write("inside/model.safetensors.index.json", json{{"weight_map", {{"t", name}}}}.dump());
    EXPECT_THROW(HuggingFaceWeights(outside.path() / "inside"), ConfigError) << name;
    outside.write("inside/manifest.json", manifest_json({50, 5, 1, {"weight"}, {{name, seal}}}));
    EXPECT_THROW(read_manifest(outside.path() / "inside"), ConfigError) << name;
  }
  outside.write("latest", "step-1/../../" + outside.path().filename().string() + "\n");
  EXPECT_THROW(find_checkpoint(outside.path()), ConfigError);
}

}  // namespace
}  // namespace reckon
