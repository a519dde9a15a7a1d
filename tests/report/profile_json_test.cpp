#include "report/profile_json.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "plan/errors.h"
#include "report/write_file.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class ProfileFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("reckon_profile_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path write(const std::string& text) {
    const fs::path file = folder_ / "profile.json";
    write_file(file, text);
    return file;
  }

  /// The diagnostic of reading `text`; a test failure when it can be read.
  Diagnostic error_of(const std::string& text) {
    try {
      read_profile(write(text), paths());
    } catch (const ConfigError& error) {
      return error.diagnostics().at(0);
    }
    ADD_FAILURE() << "was read without complaint";
    return {};
  }

  static ConfigPaths paths() { return {fs::path(RECKON_SOURCE_DIR) / "configs", {}}; }

  fs::path folder_;
};

/// Every field differs from its default, so that one that is not written or not read is seen.
StepProfile example() {
  StepProfile profile;
  profile.source = ProfileSource::measured;
  profile.plan = parse_plan(
      "model: llama-tiny\nhardware: a100-80gb-8x\n"
      "batch: {sequence_length: 64, micro_batch: 2, global_batch: 8}\nparallel: {data: 2}\n",
      "example", {"train.seed=9223372036854775807"}, {fs::path(RECKON_SOURCE_DIR) / "configs", {}});
  profile.world_size = 2;
  profile.parameters = 9007199254740993;  // 2^53 + 1: no double holds it
  profile.active_parameters = 7;
  profile.verdict = {false, 0.25, 1, Bytes(10), Bytes(9), "gradients", "parallel.zero=1"};
  profile.step = {Seconds(0.1), Seconds(0.09), Seconds(0.11), 512, 500,    2560.0,
                  2500.0,       Flops(1e15),   0.5,           0.6, "full", 0.2};
  profile.time = {{"forward.qkv", Seconds(1.0 / 3.0), Seconds(0.1), Seconds(0.01)}};
  profile.stages = {{1,
                     10,
                     3,
                     3.5,
                     {4, 8},
                     1,
                     {Bytes(1), Bytes(2), Bytes(3), Bytes(4), Bytes(5), Bytes(6), Bytes(7), Bytes(8), Bytes(9),
                      Bytes(10), Bytes(11)}}};
  profile.traffic = {{"tensor", "all_gather", "bf16", 3, 4096}};
  profile.packing = {12, 2, 640.5, 1.25, 0.9, 0.4, "zigzag", 1.1, 1.5, 3.0};
  profile.assumptions = {"links are idle"};
  profile.warnings = {"a \"quoted\" word"};
  return profile;
}

TEST_F(ProfileFile, ReadingGivesBackEveryValue) {
  const std::string text = profile_json(example());
  EXPECT_EQ(profile_json(read_profile(write(text), paths())), text);
}

TEST_F(ProfileFile, HasTheKeysOfTheContractInItsOrder) {
  const auto document = nlohmann::ordered_json::parse(profile_json(example()));
  const auto keys = [](const nlohmann::ordered_json& object) {
    std::vector<std::string> names;
    for (const auto& [name, value] : object.items()) names.push_back(name);
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(keys(document), (Names{"schema", "source", "plan", "world_size", "model", "verdict", "step", "time",
                                   "stages", "traffic", "packing", "assumptions", "warnings", "correction_factor"}));
  EXPECT_EQ(keys(document["model"]), (Names{"name", "parameters", "active_parameters"}));
  EXPECT_EQ(keys(document["verdict"]),
            (Names{"fits", "probability", "worst_rank", "need_bytes", "limit_bytes", "breaks", "nearest"}));
  EXPECT_EQ(keys(document["step"]), (Names{"seconds", "interval_seconds", "tokens", "useful_tokens",
                                           "tokens_per_second_per_device", "useful_tokens_per_second_per_device",
                                           "model_flops", "mfu", "hfu", "flop_convention", "bubble_fraction"}));
  EXPECT_EQ(keys(document["stages"][0]["memory"]),
            (Names{"parameters", "gradients", "optimizer", "activations", "transient", "communication",
                   "peak_allocated", "allocator_slack", "communicators", "context", "device_used"}));
  EXPECT_EQ(document["schema"], "reckon.profile/1");
  EXPECT_EQ(document["model"]["parameters"], 9007199254740993);
  EXPECT_EQ(document["plan"]["parallel"]["data"], 2);
  EXPECT_EQ(document["step"]["interval_seconds"], (nlohmann::ordered_json{0.09, 0.11}));
}

TEST_F(ProfileFile, UndefinedNumbersAreNullAndComeBackUndefined) {
  StepProfile profile = example();
  profile.step.mfu = std::nan("");
  const std::string text = profile_json(profile);
  EXPECT_TRUE(json::parse(text)["step"]["mfu"].is_null());
  EXPECT_TRUE(std::isnan(read_profile(write(text), paths()).step.mfu));
}

TEST_F(ProfileFile, KeysAddedByLaterVersionsArePassedOver) {
  json document = json::parse(profile_json(example()));
  document["new_key"] = {1, 2};
  document["step"]["another"] = "text";
  EXPECT_EQ(read_profile(write(document.dump()), paths()).step.tokens, 512);
}

TEST_F(ProfileFile, EveryWrongValueIsNamedWithItsPlace) {
  const struct {
    const char* pointer;
    json value;
    const char* key;
  } cases[] = {
      {"/schema", "reckon.profile/2", "schema"},
      {"/source", "guessed", "source"},
      {"/world_size", 1.5, "world_size"},
      {"/world_size", 18446744073709551615u, "world_size"},
      {"/verdict", json::array(), "verdict"},
      {"/step/seconds", "fast", "step.seconds"},
      {"/step/interval_seconds", {1}, "step.interval_seconds"},
      {"/time", json::object(), "time"},
      {"/time/0/component", 3, "time[0].component"},
      {"/stages/0/activation_bits", {1ll << 40}, "stages[0].activation_bits[0]"},
      {"/stages/0/memory/parameters", nullptr, "stages[0].memory.parameters"},
      {"/verdict/breaks", 1, "verdict.breaks"},
      {"/plan", 7, "plan"},
  };
  for (const auto& wrong : cases) {
    json document = json::parse(profile_json(example()));
    document[json::json_pointer(wrong.pointer)] = wrong.value;
    const Diagnostic error = error_of(document.dump());
    EXPECT_EQ(error.key, wrong.key) << error.message;
    EXPECT_NE(error.file.find("profile.json"), std::string::npos);
  }
}

TEST_F(ProfileFile, AMissingKeyIsNamed) {
  json document = json::parse(profile_json(example()));
  document["stages"][0]["memory"].erase("gradients");
  const Diagnostic error = error_of(document.dump());
  EXPECT_EQ(error.key, "stages[0].memory.gradients");
  EXPECT_NE(error.message.find("missing"), std::string::npos);
}

TEST_F(ProfileFile, BrokenTextIsRefusedWithLineAndColumn) {
  const Diagnostic error = error_of("{\n  \"schema\": ]\n}");
  EXPECT_EQ(error.line, 2);
  EXPECT_EQ(error.column, 13);
  EXPECT_FALSE(error_of("").message.empty());
  EXPECT_FALSE(error_of("{\"schema\": \"\xff\xfe\"}").message.empty());
  EXPECT_FALSE(error_of("[]").message.empty());
  EXPECT_NE(error_of(std::string(200, '[') + std::string(200, ']')).message.find("deep"), std::string::npos);
}

TEST_F(ProfileFile, TruncationAnywhereIsAnErrorAndNoCrash) {
  const std::string text = profile_json(example());
  for (std::size_t length = 0; length + 2 < text.size(); length += 97)
    EXPECT_THROW(read_profile(write(text.substr(0, length)), paths()), ConfigError) << length;
}

TEST_F(ProfileFile, MissingFilesAndFoldersAreRefused) {
  EXPECT_THROW(read_profile(folder_ / "none.json", paths()), ConfigError);
  EXPECT_THROW(read_profile(folder_, paths()), ConfigError);
}

TEST_F(ProfileFile, ALinkStaysALinkAndADeviceADevice) {
  fs::create_symlink("named.json", folder_ / "link");
  write_file(folder_ / "link", "text");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(fs::file_size(folder_ / "named.json"), 4u);
  fs::create_symlink("/dev/null", folder_ / "nothing");
  write_file(folder_ / "nothing", "text");
  EXPECT_TRUE(fs::is_symlink(folder_ / "nothing"));
  EXPECT_TRUE(fs::is_character_file(folder_ / "nothing"));
  fs::create_symlink("round", folder_ / "round");
  EXPECT_THROW(write_file(folder_ / "round", "text"), RunError);
}

TEST_F(ProfileFile, AFailedWriteLeavesNothingBehind) {
  EXPECT_THROW(write_file(folder_ / "missing" / "file.json", "text"), RunError);
  fs::create_directory(folder_ / "taken");
  EXPECT_THROW(write_file(folder_ / "taken", "text"), RunError);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace reckon
