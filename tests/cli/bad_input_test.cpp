// Bad input: a sentence on standard error, the exit code of the command contract, and with --json one document that
// says the same.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/run_command.h"

namespace reckon::test {
namespace {

const std::string kTiny = RECKON_SOURCE_DIR "/tests/golden/tiny.yaml";

struct BadInput {
  const char* name;
  std::string line;  // a shell line; FOLDER stands for an empty temporary folder, TINY for a small legal plan
  int exit_code;
  std::string says;  // part of the message
};

void PrintTo(const BadInput& input, std::ostream* stream) {
  *stream << input.line;
}

std::string with_places(std::string line, const std::string& folder) {
  for (const auto& [word, value] : {std::pair<std::string, std::string>{"FOLDER", folder}, {"TINY", kTiny}})
    for (std::size_t at; (at = line.find(word)) != std::string::npos;) line.replace(at, word.size(), value);
  return line;
}

class BadInputs : public testing::TestWithParam<BadInput> {};

TEST_P(BadInputs, AreRefusedWithASentenceAndTheExitCode) {
  const TemporaryFolder folder;
  const CommandResult result = run_command(with_places(GetParam().line, folder.path()), folder.path());
  EXPECT_EQ(result.exit_code, GetParam().exit_code) << result.err;
  EXPECT_NE(result.err.find(GetParam().says), std::string::npos) << result.err;
  EXPECT_NE(result.err.find(' '), std::string::npos) << "no sentence: " << result.err;
}

TEST_P(BadInputs, AreOneDocumentWithJson) {
  const TemporaryFolder folder;
  const CommandResult result = run_command(with_places(GetParam().line, folder.path()) + " --json", folder.path());
  EXPECT_EQ(result.exit_code, GetParam().exit_code) << result.err;
  const auto document = nlohmann::json::parse(result.out, nullptr, false);
  ASSERT_FALSE(document.is_discarded()) << result.out;
  if (GetParam().exit_code == 4) return;  // a plan that does not fit prints its record, not an error
  EXPECT_EQ(document["schema"], "reckon.error/1");
  EXPECT_EQ(document["exit_code"], GetParam().exit_code);
  ASSERT_FALSE(document["errors"].empty());
  for (const auto& error : document["errors"])
    for (const char* key : {"message", "file", "line", "column", "key"})
      EXPECT_TRUE(error.contains(key)) << error.dump();
}

const std::vector<BadInput> kCases = {
    {"NoCommand", "reckon", 2, "a command is missing"},
    {"UnknownCommand", "reckon pln x", 2, "did you mean `reckon plan`"},
    {"UnknownOption", "reckon plan TINY --speed", 2, "--speed"},
    {"MissingPlan", "reckon plan", 2, "PLAN is required"},
    {"OverrideWithoutValue", "reckon plan TINY parallel.tensor", 2, "key=value"},
    {"UnknownKey", "reckon plan TINY parallel.tensr=2", 2, "did you mean"},
    {"UnknownKeyInFile", "echo 'modle: llama-tiny' >FOLDER/p.yaml; reckon plan FOLDER/p.yaml", 2, "p.yaml:1:1"},
    {"WrongType", "reckon plan TINY parallel.tensor=two", 2, "parallel.tensor"},
    {"MissingUnit", "reckon plan TINY memory.limit=80", 2, "unit"},
    {"OutOfRange", "reckon plan TINY parallel.zero=4", 2, "parallel.zero"},
    {"UnknownModel", "reckon plan TINY model=llama-tinny", 2, "llama-tiny"},
    {"UnknownHardware", "reckon plan TINY hardware=a100-80gb-9x", 2, "a100-80gb-8x"},
    {"UnknownPlan", "reckon plan tinny", 2, "no plan file tinny"},
    {"PlanIsAFolder", "reckon plan FOLDER", 2, "is a folder"},
    {"EmptyPlan", ": >FOLDER/p.yaml; reckon plan FOLDER/p.yaml", 2, "p.yaml"},
    {"BrokenYaml", "echo 'a: [1, 2' >FOLDER/p.yaml; reckon plan FOLDER/p.yaml", 2, "p.yaml:"},
    {"BinaryPlan", "printf '\\377\\376\\000' >FOLDER/p.yaml; reckon plan FOLDER/p.yaml", 2, "p.yaml"},
    {"WorldSizeDoesNotMultiplyOut", "reckon plan TINY parallel.data=4 nodes=2", 3, "nodes"},
    {"GlobalBatchNotDivisible", "reckon plan TINY batch.global_batch=7", 3, "global_batch"},
    {"TooFewLayersForStages", "reckon plan TINY parallel.data=1 parallel.pipeline=64", 3, "layers"},
    {"LayersListOfWrongSum", "reckon plan TINY parallel.pipeline=2 parallel.layers_per_stage=[1,99]", 3, "layers"},
    {"HeadsNotDivisible", "reckon plan TINY parallel.tensor=3", 3, "heads"},
    {"MoreTokensThanCanBeCounted", "reckon plan TINY batch.sequence_length=1000000000000000000", 2, "out of range"},
    {"MoreRanksThanCanBeCounted", "reckon plan TINY parallel.data=2147483648", 2, "out of range"},
    {"MoreWidthThanCanBeCounted", "reckon plan TINY model.hidden=2147483648", 2, "hidden"},
    {"MoreExpertsThanCanBeCounted", "reckon plan TINY model.moe.experts=2147483648", 2, "experts"},
    {"MoreDevicesANodeThanThereCanBe", "reckon plan TINY hardware.devices_per_node=2147483647", 3, "1 to 65536"},
    {"MoreBucketsThanCanBeListed",
     "reckon plan TINY model.hidden=16777216 model.heads=1048576 model.kv_heads=1048576 model.head_dim=16", 3,
     "buckets; at most"},
    {"MorePipelineActionsThanCanBePlanned", "reckon plan TINY batch.global_batch=1073741824", 3, "pipeline actions"},
    {"MoreTasksThanCanBeSimulated", "reckon simulate TINY batch.global_batch=2097152", 3, "can be simulated"},
    {"LimitBelowTheParameters", "reckon plan TINY memory.limit=1KiB", 4, "does not fit"},
    {"ZeroSteps", "reckon run TINY --steps 0 --backend threads", 2, "train.steps"},
    {"StepsNoNumber", "reckon run TINY --steps many", 2, "--steps"},
    {"UnknownBackend", "reckon run TINY --backend gloo", 2, "--backend"},
    {"CompareNothing", "reckon compare FOLDER", 2, "measured.json"},
    {"CompareOneFile", "echo {} >FOLDER/a.json; reckon compare FOLDER/a.json", 2, "two profiles or more"},
    {"CompareNoProfiles", "echo {} >FOLDER/a.json; reckon compare FOLDER/a.json FOLDER/a.json", 2, "schema"},
    {"CompareMissingFile", "reckon compare FOLDER/a.json FOLDER/b.json", 2, "a.json"},
    {"ToleranceNoNumber", "reckon compare FOLDER --tolerance much", 2, "--tolerance"},
    {"UnknownName", "reckon show llama2-13", 2, "did you mean llama2-13b"},
    {"SearchFindsNoneThatFits", "reckon search TINY --devices 2 memory.limit=1KiB", 4, "none of the"},
    {"OverrideWithoutAPlan", "reckon calibrate parallel.tensor=2", 2, "--plan"},
    {"ConfigsFolderMissing", "RECKON_CONFIGS=FOLDER/none reckon plan TINY", 2, "RECKON_CONFIGS"},
};

INSTANTIATE_TEST_SUITE_P(Cli, BadInputs, testing::ValuesIn(kCases), [](const auto& input) { return input.param.name; });

TEST(BadInput, AnUnreadableFileIsNamed) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read every file";
  const TemporaryFolder folder;
  folder.write("p.yaml", "reckon: 1\n");
  const CommandResult result = run_command("chmod 0 p.yaml; reckon plan p.yaml", folder.path());
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("p.yaml"), std::string::npos);
}

TEST(BadInput, AllProblemsOfAFileAreListedAtOnce) {
  const CommandResult result =
      run_command("reckon plan " + kTiny + " parallel.tensr=1 memory.limit=80 batch.micro_batch=x");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 3) << result.err;
}

TEST(BadInput, ClosedStreamsChangeNoExitCode) {
  EXPECT_EQ(run_command("reckon plan tinny 2>&-").exit_code, 2);
  EXPECT_EQ(run_command("reckon plan tinny --json >&- 2>&-").exit_code, 2);
  EXPECT_EQ(run_command("reckon plan " + kTiny + " 2>&-").exit_code, 0);
}

TEST(BadInput, AFullOutputDeviceIsNoSuccess) {
  const CommandResult result = run_command("reckon plan " + kTiny + " >/dev/full");
  EXPECT_EQ(result.exit_code, 6);
  EXPECT_NE(result.err.find("standard output"), std::string::npos);
}

}  // namespace
}  // namespace reckon::test
