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
    {"MoreDocumentsThanCanBePacked",
     "reckon plan TINY batch.sequence_length=1048576 batch.global_batch=65536 documents.source=c4", 3,
     "would hold more than 4194304 documents of c4"},
    {"MoreTasksThanCanBeSimulated", "reckon simulate TINY batch.global_batch=2097152", 3, "can be simulated"},
    {"OverrideOfAModelIsNamed", "reckon plan TINY model.layers=4611686018427387904", 2,
     "model.layers=4611686018427387904: layers is 4611686018427387904; a whole number from 1 to 10000"},
    {"TheRightOverrideIsNamed", "reckon plan TINY model.layers=2 model.hidden=2147483648 model.heads=4", 2,
     "model.hidden=2147483648: hidden is 2147483648"},
    {"OverridesThatDisagreeAreNamedTogether", "reckon plan TINY model.hidden=100 model.heads=7", 2,
     "model.hidden=100 model.heads=7: "},
    {"OverrideOfHardwareIsNamed", "reckon plan TINY hardware.device.memory=-1GiB", 2,
     "hardware.device.memory=-1GiB: 'memory' must be above 0"},
    {"OverrideOfHardwareWithoutUnitIsNamed", "reckon plan TINY hardware.device.memory=80", 2,
     "hardware.device.memory=80: "},
    {"MoreLayersThanThereCanBe", "reckon plan TINY model.layers=9223372036854775807", 2, "from 1 to 10000"},
    {"MoreRowsThanCanBeCounted", "reckon plan TINY batch.global_batch=1000000000000000000", 2, "out of range"},
    {"MoreNodesThanCanBeCounted", "reckon plan TINY nodes=2147483648", 2, "out of range"},
    {"MoreBytesThanCanBeCounted", "reckon plan TINY memory.limit=9000000000GiB", 2, "too large"},
    {"MoreStepsThanCanBeCounted", "reckon plan TINY train.steps=18446744073709551616", 2, "too large"},
    {"MoreDevicesThanCanBeSearched", "reckon search TINY --devices 4611686018427387904", 2, "--devices"},
    {"MoreDevicesThanCanBeImported", "reckon import FOLDER/a --devices 2147483648", 2, "--devices"},
    {"TimesThatNoStepTakes", "reckon plan TINY hardware.device.memory_bandwidth=1e-300B/s", 3,
     "look at the figures of hardware"},
    {"MoreTimeThanCanBeSimulated", "reckon simulate TINY hardware.device.memory_bandwidth=0.1B/s", 3,
     "can be simulated"},
    {"MoreMemoryThanCanBeCounted", "reckon plan TINY hardware.context=8000000000GiB", 3, "at most 2^60"},
    {"ANameTooLongForAFile", "reckon plan TINY documents.source=$(head -c 5000 /dev/zero | tr '\\0' x)", 2,
     "documents.source is"},
    {"DataOfANameTooLong", "reckon tokenize $(head -c 5000 /dev/zero | tr '\\0' x) --out FOLDER/t", 2,
     "there is no such file or folder"},
    {"APipeIsNoTokenFile", "mkfifo FOLDER/p.tokens; reckon plan TINY documents.source=FOLDER/p.tokens", 2,
     "is not a regular file"},
    {"NotANumber", "reckon plan TINY optimizer.learning_rate=nan", 2, "learning_rate"},
    {"HugeImport",
     "echo '{\"model_type\": \"llama\", \"num_hidden_layers\": 1000000000000000000, \"hidden_size\": 64, "
     "\"num_attention_heads\": 4, \"vocab_size\": 100, \"intermediate_size\": 64}' >FOLDER/config.json; "
     "reckon plan TINY model=FOLDER/config.json",
     2, "num_hidden_layers"},
    {"HugeMegatron",
     "reckon import --from megatron FOLDER/a.txt 2>/dev/null; echo '--num-layers 9223372036854775807 --hidden-size 64 "
     "--num-attention-heads 4 --seq-length 1000000000000000000 --micro-batch-size 1 --global-batch-size 8' "
     ">FOLDER/a.txt; "
     "reckon import --from megatron FOLDER/a.txt",
     2, "9223372036854775807"},
    {"DegreesThatMultiplyBeyondCounting",  // 65536^4 = 2^64
     "printf '[training]\\nseq_len = 64\\ndata_parallel_replicate_degree = "
     "65536\\n[parallelism]\\ntensor_parallel_degree = 65536\\n"
     "pipeline_parallel_degree = 65536\\ncontext_parallel_degree = 65536\\n' >FOLDER/t.toml; reckon import "
     "FOLDER/t.toml",
     2, "more than the 2^20 ranks"},
    {"ControlCharactersInAName", "printf 'model: {name: \"a\\e[2Jb\"}\\n' >FOLDER/p.yaml; reckon plan FOLDER/p.yaml", 2,
     "0x1B"},
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
