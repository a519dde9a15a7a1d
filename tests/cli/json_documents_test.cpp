// Every JSON document of the commands: valid against its schema in report/schemas, and its totals add up.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/run_command.h"
#include "tests/support/totals.h"

namespace reckon::test {
namespace {

namespace fs = std::filesystem;

const std::string kSource = RECKON_SOURCE_DIR;
const std::string kTiny = kSource + "/tests/golden/tiny.yaml";

constexpr const char* kNoValidator = "apt-get install python3-jsonschema brings the validator that this test needs";

/// Documents of commands in one folder, checked together at the end: starting a validator takes longer than validating.
class Documents {
 public:
  /// A shell line that starts with "reckon COMMAND"; it runs in the folder, so that it can read earlier documents.
  nlohmann::json add(const std::string& name, const std::string& line, int exit_code = 0) {
    const CommandResult result = run_command(line + " --json", folder_.path());
    EXPECT_EQ(result.exit_code, exit_code) << line << "\n" << result.err;
    const auto document = nlohmann::json::parse(result.out, nullptr, false);
    EXPECT_FALSE(document.is_discarded()) << line << "\n" << result.out.substr(0, 500);
    if (document.is_discarded()) return {};
    folder_.write(name + ".json", result.out);
    for (const std::string& sentence : broken_totals(document)) ADD_FAILURE() << line << "\n" << sentence;
    return document;
  }
  void shell(const std::string& line) { EXPECT_EQ(run_command(line, folder_.path()).exit_code, 0) << line; }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

  /// What is wrong with the documents of the folder, or "valid: " and the schemas that were used.
  CommandResult validate() const {
    const std::string arguments =
        " " + kSource + "/tests/support/validate_documents.py " + kSource + "/report/schemas " + folder_.path();
    const CommandResult result = run_command("python3" + arguments);
    return result.exit_code == 77 ? run_command("/usr/bin/python3" + arguments) : result;  // Debian's own
  }

 private:
  TemporaryFolder folder_;
};

void expect_valid(const Documents& documents) {
  const CommandResult result = documents.validate();
  if (result.exit_code == 77 || result.exit_code == 127) GTEST_SKIP() << kNoValidator;
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST(JsonDocuments, OfPlanSimulateAndCompare) {
  Documents documents;
  documents.add("predicted", "reckon plan " + kTiny);
  documents.add("too_large", "reckon plan " + kTiny + " memory.limit=1MiB", 4);
  documents.add("packed", "reckon plan " + kTiny + " batch.sequence_length=4096 documents.source=wikipedia");
  documents.add("padded", "reckon plan " + kTiny +
                              " batch.sequence_length=4096 documents.source=wikipedia "
                              "documents.rows=padded parallel.data=1 parallel.ring=2");
  documents.add("simulated", "reckon simulate " + kTiny);
  documents.add("out_of_memory", "reckon simulate " + kTiny + " --memory-limit 1MiB", 4);
  documents.add("two", "reckon compare predicted.json simulated.json");
  documents.add("three", "reckon compare predicted.json simulated.json predicted.json");
  documents.add("plans", "reckon compare " + kTiny + " parallel.zero=1 optimizer.states=int8");
  for (const char* run : {"first", "second"}) {
    documents.shell(std::string("mkdir ") + run + " && cp predicted.json simulated.json " + run + " && sed " +
                    "'s/\"source\": \"simulated\"/\"source\": \"measured\"/' simulated.json >" + run +
                    "/measured.json");
  }
  documents.add("run", "reckon compare first");
  documents.add("history", "reckon compare --history first second");
  expect_valid(documents);
}

TEST(JsonDocuments, OfSearchAndExplain) {
  Documents documents;
  const auto all = documents.add("all", "reckon search " + kTiny + " --devices 4 --top 3");
  EXPECT_EQ(all["plans"].size(), 3u);
  documents.add("tight", "reckon search " + kTiny + " --devices 4 memory.limit=380MiB");
  documents.add("large", "reckon search llama2-70b-128xa100 --devices 16");
  documents.add("none", "reckon search " + kTiny + " --devices 2 memory.limit=1KiB", 4);
  documents.add("size", "reckon explain llama2-70b-128xa100 '512.00 MiB'");
  documents.add("plan", "reckon explain llama3.1-8b-h100-node");
  documents.add("too_large", "reckon explain " + kTiny + " memory.limit=1MiB", 4);
  documents.add("difference", "reckon explain agoq-megatron-32k agoq-agoq-32k");
  expect_valid(documents);
}

TEST(JsonDocuments, OfImportAndExport) {
  Documents documents;
  for (const auto& entry : fs::recursive_directory_iterator(kSource + "/tests/exchange/files")) {
    if (!entry.is_regular_file()) continue;
    const std::string file = entry.path().string();
    std::string name = entry.path().parent_path().filename().string() + "_" + entry.path().filename().string();
    documents.add(name, "reckon import " + file, run_command("reckon import " + file).exit_code);
  }
  for (const char* target : {"megatron", "deepspeed", "torchtitan"})
    documents.add(target, std::string("reckon export llama3.1-8b-h100-node --to ") + target);
  expect_valid(documents);
}

TEST(JsonDocuments, OfTheOtherCommands) {
  Documents documents;
  for (const char* what : {"models", "hardware", "formats", "plans", "llama2-13b", "a100-80gb-8x"})
    documents.add(std::string("show_") + what, std::string("reckon show ") + what);
  for (const char* paper : {"agoq", "hsap"}) documents.add(paper, std::string("reckon reproduce ") + paper);
  const std::string score = "reckon score " + kSource + "/tests/golden/measured_runs.csv";
  documents.add("score", score);
  documents.add("score_rows", score + " --rows --recompute both");
  documents.add("doctor", "reckon doctor");
  documents.add("version", "reckon --version");
  documents.add("no_plan", "reckon plan tinny", 2);
  documents.add("key", "reckon plan " + kTiny + " parallel.tensr=1 memory.limit=80", 2);
  documents.add("rule", "reckon plan " + kTiny + " parallel.tensor=3", 3);
  documents.add("no_run", "reckon run " + kTiny + " --steps 0", 2);
  documents.shell("echo 'a text' >text.txt");
  documents.add("tokens", "reckon tokenize text.txt --out text.tokens");
  documents.add("completion", "reckon completion bash", 2);  // a script is no document, and that is said in one
  expect_valid(documents);
}

TEST(JsonDocuments, OfARunItsWeightsAndACalibration) {
  if (!fs::exists(RECKON_BINARY_DIR "/reckon-rank")) GTEST_SKIP() << "this build has no reckon-rank";
  Documents documents;
  const std::string plan = kSource + "/tests/golden/train.yaml";
  documents.add("measured", "reckon run " + plan +
                                " --steps 3 --backend threads --out run --check-gradients "
                                "train.checkpoint_every=3");
  documents.shell("for name in comparison gradients; do cp run/$name.json of_the_run_$name.json; done");
  documents.shell("cp run/metrics.jsonl steps.jsonl");
  documents.add("weights", "reckon export run --to huggingface --out weights");
  documents.add("calibrated", "reckon calibrate --quick --plan " + plan + " --out machine.yaml");
  expect_valid(documents);
}

/// Lines of the usage text that name a command: two spaces, its name, more spaces, what it does.
std::vector<std::string> command_names() {
  std::vector<std::string> names;
  std::istringstream help(run_command("reckon --help").out);
  bool listed = false;
  for (std::string line; std::getline(help, line);) {
    if (!line.starts_with("  ")) listed = line.starts_with("Subcommands:");
    else if (listed) names.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return names;
}

TEST(JsonDocuments, OfNoCommandAreForgotten) {
  const std::string own = read_file(kSource + "/tests/cli/json_documents_test.cpp");
  const std::vector<std::string> names = command_names();
  EXPECT_GE(names.size(), 15u);
  for (const std::string& name : names) EXPECT_NE(own.find("\"reckon " + name), std::string::npos) << name;
}

/// What no plan of a few ranks reaches: pipelines of interleaved chunks, experts, rings of documents, thousands of
/// ranks.
TEST(JsonDocuments, OfTheShippedPlans) {
  Documents documents;
  std::size_t plans = 0;
  for (const auto& entry : fs::directory_iterator(kSource + "/configs/plans")) {
    const std::string name = entry.path().stem().string();
    ++plans;
    const bool local = name.starts_with("cpu-");  // plans for the machine at hand, which need not be calibrated
    const std::string plan = name + (local ? " hardware=" + kSource + "/tests/golden/cpu.yaml" : "");
    documents.add("predicted_" + name, "reckon plan " + plan);
    documents.add("simulated_" + name, "reckon simulate " + plan);
    documents.add("compared_" + name, "reckon compare predicted_" + name + ".json simulated_" + name + ".json");
  }
  EXPECT_GE(plans, 15u);
  expect_valid(documents);
}

TEST(JsonDocuments, AreRefusedWithARenamedKeyAWrongTypeOrAWrongSign) {
  Documents documents;
  const auto good = documents.add("good", "reckon plan " + kTiny);
  const std::vector<std::pair<std::string, nlohmann::json>> changes = {{"/schema", "reckon.profile/2"},
                                                                       {"/step/seconds", "1 s"},
                                                                       {"/step/seconds", nullptr},
                                                                       {"/stages/0/memory/parameters", -1},
                                                                       {"/verdict/fits", 1},
                                                                       {"/world_size", 1.5},
                                                                       {"/traffic/0/byte_per_rank", "added"},
                                                                       {"/step", {}}};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    auto bad = good;
    bad[nlohmann::json::json_pointer(changes[i].first)] = changes[i].second;
    std::ofstream(documents.path("bad" + std::to_string(i) + ".json")) << bad;
  }
  auto renamed = good;
  renamed["step"]["token"] = renamed["step"]["tokens"];
  renamed["step"].erase("tokens");
  std::ofstream(documents.path("renamed.json")) << renamed;

  const CommandResult result = documents.validate();
  if (result.exit_code == 77 || result.exit_code == 127) GTEST_SKIP() << kNoValidator;
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out.find("good.json"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("renamed.json: $.step: 'tokens' is a required property"), std::string::npos) << result.out;
  for (std::size_t i = 0; i < changes.size(); ++i)
    EXPECT_NE(result.out.find("bad" + std::to_string(i) + ".json"), std::string::npos) << changes[i].first;
}

TEST(JsonDocuments, TotalsThatDoNotAddUpAreFound) {
  const auto good = nlohmann::json::parse(run_command("reckon plan " + kTiny + " --json").out);
  EXPECT_TRUE(broken_totals(good).empty());
  for (const char* place : {"/step/tokens", "/stages/0/memory/transient", "/time/0/exposed_seconds", "/world_size",
                            "/verdict/need_bytes", "/stages/0/layers", "/step/tokens_per_second_per_device"}) {
    auto bad = good;
    auto& number = bad[nlohmann::json::json_pointer(place)];
    if (number.is_number_float()) number = number.get<double>() * (1 + 1e-6);
    else number = number.get<std::int64_t>() + 2;
    EXPECT_FALSE(broken_totals(bad).empty()) << place;
  }
}

}  // namespace
}  // namespace reckon::test
