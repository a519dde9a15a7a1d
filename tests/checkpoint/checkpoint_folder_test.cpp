// Checkpoints on disk: complete or not there, sound or refused by name.
#include "runtime/checkpoint/checkpoint_folder.h"

#include <gtest/gtest.h>

#include "plan/errors.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/checkpoint/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;

/// Two ranks: rank 0 has columns 0 and 1 of "w" (2 x 3) and rank 1 column 2; element (r, c) of a state is
/// `base` + 10 r + c.
std::map<std::string, FileSeal> write_rank_files(const fs::path& folder, float base) {
  std::map<std::string, FileSeal> seals;
  for (const int rank : {0, 1}) {
    const TensorRegion region = rank == 0 ? TensorRegion{3, 0, 0, 2, 2, 0, 4} : TensorRegion{3, 0, 2, 2, 1, 0, 2};
    SafetensorsWriter writer(folder / rank_file(rank), rank_file_header({{"w", {2, 3}, region}}, {"weight", "moment"}));
    for (const float state : {base, base + 100})
      writer.append(rank == 0 ? std::vector<float>{state, state + 1, state + 10, state + 11}
                              : std::vector<float>{state + 2, state + 12});
    seals[rank_file(rank)] = writer.finish();
  }
  return seals;
}

/// As `save`, up to where `latest` is to name it.
void complete(const fs::path& checkpoints, std::int64_t step) {
  begin_checkpoint(checkpoints, step);
  const fs::path unfinished = unfinished_checkpoint(checkpoints, step);
  CheckpointManifest manifest{step, 5, 2, {"weight", "moment"}, write_rank_files(unfinished, static_cast<float>(step))};
  DurableFile plan(unfinished / "plan.yaml");
  plan.append(std::string("reckon: 1\n"));
  manifest.files["plan.yaml"] = plan.finish();
  complete_checkpoint(checkpoints, manifest);
}

void save(const fs::path& checkpoints, std::int64_t step, std::int64_t keep = 2) {
  complete(checkpoints, step);
  make_latest(checkpoints, step, keep);
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

/// "v" (6) in two parts: elements 0 to 2 in FP32, 3 to 5 in codes; their blocks of two began one element before.
fs::path save_narrow(const fs::path& checkpoints, const std::string& scale_type = "F32") {
  begin_checkpoint(checkpoints, 7);
  const fs::path unfinished = unfinished_checkpoint(checkpoints, 7);
  SafetensorsHeader header =
      rank_file_header({{"v", {6}, {1, 0, 0, 6, 1, 0, 3}}, {"v", {6}, {1, 0, 0, 6, 1, 3, 3}, {2, 1}}},
                       {"first_moment", "second_moment"});
  for (StoredTensor& tensor : header.tensors)
    if (tensor.name.starts_with("first_moment_scale")) tensor.type = scale_type;
  SafetensorsWriter writer(unfinished / rank_file(0), header);
  for (const std::vector<float>& values : std::vector<std::vector<float>>{
           {0.5f, 1.5f, 2.5f}, {-127, 3, 4}, {0.25f, 0.5f}, {9, 16, 25}, {255, 1, 2}, {1, 0.5f}})
    writer.append(values);
  CheckpointManifest manifest{7, 5, 1, {"first_moment", "second_moment"}, {{rank_file(0), writer.finish()}}};
  complete_checkpoint(checkpoints, manifest);
  make_latest(checkpoints, 7, 2);
  return checkpoints;
}

TEST(Checkpoint, MomentsInEightBitsAreReadAsNumbersCodesAndScales) {
  const TemporaryFolder run;
  const CheckpointReader reader(find_checkpoint(save_narrow(run.path() / "checkpoints").parent_path()));
  const auto read = [&](const std::string& state) {
    std::vector<float> values(5);
    reader.read(state, "v", {1, 0, 0, 6, 1, 1, 5}, values);
    return values;
  };
  using Values = std::vector<float>;
  EXPECT_EQ(read("first_moment"), (Values{1.5f, 2.5f, -127 * 0.25f, 3 * 0.5f, 4 * 0.5f}));
  EXPECT_EQ(read("first_moment_code"), (Values{0, 0, -127, 3, 4}));
  EXPECT_EQ(read("first_moment_scale"), (Values{0, 0, 0.25f, 0.5f, 0.5f}));
  EXPECT_EQ(read("second_moment"), (Values{16, 25, 255 * 255, 0.25f, 1}));  // roots under 1 and 0.5
}

TEST(Checkpoint, CodesWithoutSoundScalesAreRefused) {
  const TemporaryFolder run;
  EXPECT_THROW(CheckpointReader(find_checkpoint(save_narrow(run.path() / "checkpoints", "BF16").parent_path())),
               ConfigError);
}

TEST(Checkpoint, IsReadBackHoweverItIsCut) {
  const TemporaryFolder run;
  save(run.path() / "checkpoints", 50);
  const CheckpointReader reader(find_checkpoint(run.path()));
  reader.verify();
  EXPECT_EQ(reader.manifest().step, 50);
  EXPECT_EQ(reader.manifest().seed, 5u);
  EXPECT_TRUE(reader.holds("moment"));
  EXPECT_FALSE(reader.holds("second_moment"));
  std::vector<float> whole(6), middle(3);
  reader.read("weight", "w", {3, 0, 0, 2, 3, 0, 6}, whole);
  EXPECT_EQ(whole, (std::vector<float>{50, 51, 52, 60, 61, 62}));
  reader.read("moment", "w", {3, 0, 0, 2, 3, 1, 3}, middle);  // across both ranks' columns and both rows
  EXPECT_EQ(middle, (std::vector<float>{151, 152, 160}));
}

TEST(Checkpoint, AMissingTensorIsNamed) {
  const TemporaryFolder run;
  save(run.path() / "checkpoints", 50);
  const CheckpointReader reader(find_checkpoint(run.path()));
  std::vector<float> values(2);
  try {
    reader.read("weight", "other", {1, 0, 0, 2, 1, 0, 2}, values);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("0 of 2 elements of the weight of \"other\""), std::string::npos)
        << error.what();
  }
}

TEST(Checkpoint, OnlyTheNewestAreKeptAndNothingElseStays) {
  const TemporaryFolder run;
  const fs::path folder = run.path() / "checkpoints";
  for (const std::int64_t step : {10, 20, 30}) save(folder, step);
  EXPECT_EQ(names_in(folder), (std::vector<std::string>{"latest", "step-00000020", "step-00000030"}));
  EXPECT_EQ(find_checkpoint(run.path()).filename(), "step-00000030");
  EXPECT_EQ(find_checkpoint(folder).filename(), "step-00000030");
  EXPECT_EQ(find_checkpoint(folder / "step-00000020").filename(), "step-00000020");
  save(folder, 40, 0);  // keeps all
  EXPECT_EQ(names_in(folder).size(), 4u);
  EXPECT_EQ(
      names_in(folder / "step-00000040"),
      (std::vector<std::string>{"manifest.json", "plan.yaml", "rank-00000.safetensors", "rank-00001.safetensors"}));
}

TEST(Checkpoint, AnUnfinishedOneIsNeverTakenAndGoesWithTheNext) {
  const TemporaryFolder run;
  const fs::path folder = run.path() / "checkpoints";
  save(folder, 10);
  begin_checkpoint(folder, 20);
  write_rank_files(unfinished_checkpoint(folder, 20), 0);  // killed here
  EXPECT_EQ(find_checkpoint(run.path()).filename(), "step-00000010");
  remove_unfinished(folder);
  EXPECT_EQ(names_in(folder), (std::vector<std::string>{"latest", "step-00000010"}));
}

TEST(Checkpoint, ACompleteOneIsTheLatestOnceItIsNamed) {
  const TemporaryFolder run;
  const fs::path folder = run.path() / "checkpoints";
  complete(folder, 10);  // killed here: the first one, and there is no `latest`
  EXPECT_EQ(find_checkpoint(run.path()).filename(), "step-00000010");
  save(folder, 20);
  complete(folder, 30);  // killed here: resumes from 20
  EXPECT_EQ(find_checkpoint(run.path()).filename(), "step-00000020");
  // The resumed run saves more often. The one that was never named is not counted and not removed, but replaced.
  save(folder, 25);
  EXPECT_EQ(names_in(folder), (std::vector<std::string>{"latest", "step-00000020", "step-00000025", "step-00000030"}));
  EXPECT_EQ(find_checkpoint(run.path()).filename(), "step-00000025");
  save(folder, 30);
  EXPECT_EQ(names_in(folder), (std::vector<std::string>{"latest", "step-00000025", "step-00000030"}));
  EXPECT_EQ(find_checkpoint(run.path()).filename(), "step-00000030");
}

TEST(Checkpoint, WithoutOneThereIsASentence) {
  const TemporaryFolder run;
  try {
    find_checkpoint(run.path());
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("holds no checkpoint"), std::string::npos) << error.what();
  }
  run.write("checkpoints/latest", "../../etc\n");
  EXPECT_THROW(find_checkpoint(run.path()), ConfigError);
}

/// The message that reading and verifying the only checkpoint ends with.
std::string refusal(const fs::path& run) {
  try {
    CheckpointReader(find_checkpoint(run)).verify();
    return "";
  } catch (const ConfigError& error) {
    return to_string(error.diagnostics().front());
  }
}

TEST(Checkpoint, EveryChangedByteOfEveryFileIsFoundAndTheFileNamed) {
  const TemporaryFolder run;
  save(run.path() / "checkpoints", 50);
  const fs::path folder = find_checkpoint(run.path());
  for (const std::string& name : names_in(folder)) {
    const ReadOnlyFile file(folder / name);
    const std::string good = file.read_text(0, file.size());
    for (std::size_t at = 0; at < good.size(); ++at) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 1);
      run.write("checkpoints/step-00000050/" + name, bad);
      const std::string text = refusal(run.path());
      const bool is_space = name == "manifest.json" && (good[at] == ' ' || good[at] == '\n');
      EXPECT_TRUE(is_space || text.find(name) != std::string::npos) << name << " byte " << at << ": " << text;
    }
    run.write("checkpoints/step-00000050/" + name, good.substr(0, good.size() / 2));
    EXPECT_NE(refusal(run.path()).find(name), std::string::npos) << name << " cut in half";
    fs::remove(folder / name);
    EXPECT_NE(refusal(run.path()).find(name == "manifest.json" ? "latest" : name), std::string::npos) << "no " << name;
    run.write("checkpoints/step-00000050/" + name, good);
  }
  EXPECT_EQ(refusal(run.path()), "");
}

}  // namespace
}  // namespace reckon
