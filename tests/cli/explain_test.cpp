// import, export, explain, doctor and completion as a user runs them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/run_command.h"

namespace reckon::test {
namespace {

using Json = nlohmann::json;

const std::string kTiny = RECKON_SOURCE_DIR "/tests/golden/tiny.yaml";
const std::string kFiles = RECKON_SOURCE_DIR "/tests/exchange/files/";

TEST(ImportCommand, WritesAPlanThatPlanReads) {
  const TemporaryFolder folder;
  const CommandResult imported =
      run_command("reckon import " + kFiles + "megatron/one-line.txt --out plan.yaml", folder.path());
  EXPECT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_TRUE(imported.out.empty());
  const CommandResult planned = run_command("reckon plan plan.yaml --json", folder.path());
  EXPECT_TRUE(planned.exit_code == 0 || planned.exit_code == 4) << planned.err;
  EXPECT_EQ(Json::parse(planned.out)["world_size"], 16);
}

TEST(ImportCommand, JsonHasEveryList) {
  const CommandResult result = run_command("reckon import " + kFiles + "deepspeed/ulysses.json --devices 8 --json");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["schema"], "reckon.import/1");
  EXPECT_EQ(json["kind"], "deepspeed");
  EXPECT_EQ(json["plan"]["parallel"]["ulysses"], 4);
  EXPECT_EQ(json["not_understood"][0]["key"], "zero_optimization.turbo_mode");
  EXPECT_EQ(json["not_understood"][0]["line"], 3);
  EXPECT_EQ(json["missing"], (std::vector<std::string>{"model", "batch.sequence_length"}));
  for (const char* list : {"used", "defaults", "assumed", "not_modelled", "ignored", "warnings"})
    EXPECT_TRUE(json[list].is_array()) << list;
}

TEST(ImportCommand, WhatIsMissingCanBeGivenHereOrLater) {
  const TemporaryFolder folder;
  const std::string file = kFiles + "accelerate/fsdp2.yaml";
  const std::string more = " model=qwen2.5-0.5b batch.sequence_length=2048";
  EXPECT_EQ(
      run_command("reckon import " + file + " --out a.yaml" + more + " && reckon plan a.yaml", folder.path()).exit_code,
      0);
  EXPECT_EQ(
      run_command("reckon import " + file + " --out b.yaml && reckon plan b.yaml" + more, folder.path()).exit_code, 0);
  EXPECT_EQ(run_command("reckon plan b.yaml", folder.path()).exit_code, 2);
}

TEST(ImportCommand, TheCommandItNamesHasWhatIsMissing) {
  const TemporaryFolder folder;
  const std::string file =
      folder.write("train.sh",
                   "torchrun --nproc_per_node 8 p.py --num-layers 4 --hidden-size 64 --num-attention-heads 4 "
                   "--seq-length 32 --max-position-embeddings 32 --micro-batch-size 1 --global-batch-size 8 --bf16\n");
  const CommandResult imported = run_command("reckon import " + file + " --out p.yaml", folder.path());
  EXPECT_NE(imported.err.find("try: reckon plan p.yaml model.vocabulary=N"), std::string::npos) << imported.err;
  EXPECT_EQ(run_command("reckon plan p.yaml", folder.path()).exit_code, 2);
  EXPECT_EQ(run_command("reckon plan p.yaml model.vocabulary=32000", folder.path()).exit_code, 0);
}

TEST(ImportCommand, BrokenRulesAreToldInTheWordsOfTheFile) {
  const TemporaryFolder folder;
  const std::string file =
      folder.write("train.sh",
                   "torchrun --nproc_per_node 6 p.py --num-layers 4 --hidden-size 64 --num-attention-heads 4 \\\n "
                   "--seq-length 32 --max-position-embeddings 32 --vocab-size 128 \\\n --micro-batch-size 1 "
                   "--global-batch-size 6 --bf16 --tensor-model-parallel-size 3\n");
  const CommandResult result = run_command("reckon import " + file + " --json");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_NE(result.err.find("--tensor-model-parallel-size 3 (line 3)"), std::string::npos) << result.err;
  const Json error = Json::parse(result.out)["errors"][0];
  EXPECT_EQ(error["key"], "--tensor-model-parallel-size");
  EXPECT_EQ(error["line"], 3);
}

/// A public question (Megatron-LM issue 597): with the distributed optimizer over 8 ranks a weight takes 2 + 4 + 12 / 8
/// bytes, and LLaMA-2 7B has 6,738,415,616 of them.
TEST(ImportCommand, StatesOfAnImportedScriptAreThoseOfItsArithmetic) {
  const TemporaryFolder folder;
  const std::string file = folder.write(
      "train.sh",
      "torchrun --nproc_per_node 8 p.py --num-layers 32 --hidden-size 4096 --ffn-hidden-size 11008 "
      "--num-attention-heads 32 "
      "--seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 2 --global-batch-size 128 --bf16 --swiglu "
      "--use-distributed-optimizer --use-flash-attn --normalization RMSNorm --sequence-parallel --disable-bias-linear "
      "--untie-embeddings-and-output-weights --position-embedding-type rope --attention-dropout 0 --hidden-dropout 0 "
      "--vocab-size 32000\n");
  const CommandResult result = run_command(
      "reckon import " + file + " --hardware a100-80gb-8x --out p.yaml 2>/dev/null && reckon plan p.yaml --json",
      folder.path());
  const Json memory = Json::parse(result.out)["stages"][0]["memory"];
  const double states =
      memory["parameters"].get<double>() + memory["gradients"].get<double>() + memory["optimizer"].get<double>();
  EXPECT_NEAR(states, 6738415616 * 7.5, 1e-6 * states);  // buffers are padded to equal shards
}

TEST(ImportCommand, StrictRefusesWhatIsNotUnderstood) {
  const CommandResult result = run_command("reckon import " + kFiles + "torchtitan/debug.toml --strict");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("debug.toml:8"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("training.colour_of_the_logs"), std::string::npos);
  EXPECT_EQ(run_command("reckon import " + kFiles + "torchtitan/debug.toml --from nonsense").exit_code, 2);
}

TEST(ExportCommand, SaysWhatIsLost) {
  const CommandResult result =
      run_command("reckon export llama3.1-8b-h100-node --to deepspeed --json activations.stored=int4");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["schema"], "reckon.export/1");
  EXPECT_TRUE(Json::parse(json["text"].get<std::string>()).contains("zero_optimization"));
  EXPECT_NE(json["lost"].dump().find("activations.stored int4"), std::string::npos);
  EXPECT_EQ(run_command("reckon export llama3.1-8b-h100-node --to slurm").exit_code, 2);
}

TEST(ExplainCommand, DifferencesOfComponentsSumToThatOfTheSteps) {
  const CommandResult result =
      run_command("reckon explain llama2-70b-128xa100 llama2-70b-128xa100 parallel.tensor=4 parallel.data=4 --json");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["schema"], "reckon.explanation/1");
  double sum = 0;
  for (const Json& row : json["rows"]) sum += row["difference_seconds"].get<double>();
  const double total = json["second"]["step_seconds"].get<double>() - json["first"]["step_seconds"].get<double>();
  EXPECT_NEAR(sum, total, 1e-9 * json["first"]["step_seconds"].get<double>());  // some tens of doubles
  EXPECT_EQ(json["keys"][0]["key"], "parallel.data");
}

TEST(ExplainCommand, AnotherNumberOfTokensIsScaled) {
  const Json json =
      Json::parse(run_command("reckon explain " + kTiny + " " + kTiny + " batch.global_batch=16 --json").out);
  EXPECT_DOUBLE_EQ(json["scale"].get<double>(),
                   json["first"]["tokens"].get<double>() / json["second"]["tokens"].get<double>());
  double sum = 0;
  for (const Json& row : json["rows"]) sum += row["difference_seconds"].get<double>();
  const double first = json["first"]["step_seconds"], second = json["second"]["step_seconds"];
  EXPECT_NEAR(sum, second * json["scale"].get<double>() - first, 1e-9 * first);
}

TEST(ExplainCommand, APastedLineWithItsRemarks) {
  const std::string line =
      "'CUDA out of memory. Tried to allocate 3.91 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.33 GiB is "
      "free. Of the allocated memory 57.88 GiB is allocated by PyTorch, and 17.62 GiB is reserved by PyTorch but "
      "unallocated.'";
  const CommandResult result = run_command("reckon explain llama3.1-8b-h100-node batch.sequence_length=8192 " + line);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("logits"), std::string::npos) << result.out;
  // The allocated bytes are near the predicted peak, so that "not need" would be wrong.
  EXPECT_NE(result.out.find("fragmentation at the peak"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("was at its peak"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("not need"), std::string::npos);
  const std::string early =
      "'Tried to allocate 3.91 GiB. 20.00 GiB is allocated by PyTorch, and 17.62 GiB is reserved by "
      "PyTorch but unallocated.'";
  EXPECT_NE(run_command("reckon explain llama3.1-8b-h100-node batch.sequence_length=8192 " + early)
                .out.find("fragmentation, not need"),
            std::string::npos);
  EXPECT_EQ(run_command("reckon explain llama3.1-8b-h100-node no-such-plan").exit_code, 2);
}

TEST(ExplainCommand, ASingleChangeMakesATightPlanFit) {
  const CommandResult result = run_command("reckon explain llama3.1-8b-h100-node batch.sequence_length=65536 --json");
  EXPECT_EQ(result.exit_code, 4);
  const Json json = Json::parse(result.out);
  EXPECT_FALSE(json["fits"]);
  ASSERT_FALSE(json["changes"].empty());
  for (const Json& change : json["changes"]) {
    EXPECT_TRUE(change["fits"]);
    EXPECT_LE(change["need_bytes"], json["limit_bytes"]);
  }
  EXPECT_NE(json["changes"].dump().find("activations.recompute=full"), std::string::npos);
  EXPECT_LE(json["smallest"]["devices"], 8);
}

/// One list of changes and one order: what `plan` and `simulate` call the nearest is what `explain` puts first.
TEST(ExplainCommand, NamesFirstWhatPlanAndSimulateCallNearest) {
  for (const std::string plan :
       {"llama3.1-8b-h100-node batch.sequence_length=65536", "llama3.1-8b-h100-node batch.micro_batch=4",
        "llama3.1-8b-h100-node memory.limit=30GiB"}) {
    const Json explained = Json::parse(run_command("reckon explain " + plan + " --most-devices 8 --json").out);
    ASSERT_FALSE(explained["changes"].empty()) << plan;
    std::string first;
    for (const Json& one : explained["changes"][0]["overrides"])
      first += (first.empty() ? "" : " ") + one.get<std::string>();
    for (const std::string command : {"plan ", "simulate "})
      EXPECT_EQ(Json::parse(run_command("reckon " + command + plan + " --json").out)["verdict"]["nearest"], first)
          << command << plan;
  }
}

TEST(ExplainCommand, WhatChangesGradientsComesLastAndSaysSo) {
  const std::string plan =
      "reckon explain llama3.1-8b-h100-node batch.sequence_length=8192 batch.micro_batch=4 --most-devices 8";
  bool lossy = false;
  const Json json = Json::parse(run_command(plan + " --json").out);
  for (const Json& change : json["changes"]) {
    EXPECT_EQ(change["changes_gradients"], change["overrides"].dump().find("activations.stored") != std::string::npos);
    EXPECT_TRUE(!lossy || change["changes_gradients"]);
    lossy = lossy || change["changes_gradients"];
  }
  ASSERT_TRUE(lossy);
  EXPECT_NE(run_command(plan).out.find("docs/agoq.md"), std::string::npos);
}

TEST(ExplainCommand, EqualRowsAreOneWithACount) {
  const CommandResult result =
      run_command("reckon explain llama3.1-8b-h100-node '56.00 MiB' parallel.tensor=2 parallel.data=4");
  EXPECT_NE(result.out.find("gate_proj.weight and 2 more of this size"), std::string::npos) << result.out;
}

TEST(ExplainCommand, AChangedFieldOfAModelOfTheSameNameIsNamed) {
  const Json json =
      Json::parse(run_command("reckon explain " + kTiny + " " + kTiny + " model.ffn_hidden=352 --json").out);
  ASSERT_EQ(json["keys"].size(), 1u) << json["keys"].dump();
  EXPECT_EQ(json["keys"][0], (Json{{"key", "model.ffn_hidden"}, {"first", "176"}, {"second", "352"}}));
}

TEST(DoctorCommand, EveryMissingPartHasARemedy) {
  const CommandResult result = run_command("reckon doctor --json");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["schema"], "reckon.doctor/1");
  for (const Json& finding : json["findings"]) {
    EXPECT_TRUE(finding["state"] != "missing" || finding["remedy"].is_string()) << finding.dump();
  }
  EXPECT_EQ(run_command("RECKON_CONFIGS=/nowhere reckon doctor").exit_code, 0);
}

/// What bash offers for these words.
std::string completed(const std::string& words) {
  return run_command("bash -c 'source <(reckon completion bash); COMP_WORDS=(" + words +
                     "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _reckon 2>/dev/null; echo ${COMPREPLY[@]}'")
      .out;
}

TEST(CompletionCommand, BashCompletesCommandsOptionsNamesAndKeys) {
  EXPECT_EQ(completed("reckon sim"), "simulate\n");
  EXPECT_EQ(completed("reckon plan llama2-70b"), "llama2-70b-128xa100\n");
  EXPECT_EQ(completed("reckon plan x parallel.ten"), "parallel.tensor=\n");
  EXPECT_EQ(completed("reckon plan x model = mixtral-8x2"), "mixtral-8x22b\n");
  EXPECT_EQ(completed("reckon plan x parallel.schedule = 1"), "1f1b\n");
  EXPECT_EQ(completed("reckon simulate x --tra"), "--trace\n");
  EXPECT_EQ(completed("reckon run x --backend n"), "nccl\n");
  EXPECT_EQ(completed("reckon show h200"), "h200-141gb-8x\n");
}

TEST(CompletionCommand, EveryCommandIsInEveryScriptAndInTheManual) {
  const std::string help = run_command("reckon --help").out;
  for (const char* shell : {"bash", "zsh", "fish", "man"}) {
    const CommandResult script = run_command(std::string("reckon completion ") + shell);
    EXPECT_EQ(script.exit_code, 0) << script.err;
    for (const char* command :
         {"plan", "simulate", "search", "run", "compare", "calibrate", "import", "export", "explain", "doctor"}) {
      EXPECT_NE(script.out.find(command), std::string::npos) << shell << " " << command;
      EXPECT_NE(help.find(command), std::string::npos) << command;
    }
  }
  EXPECT_EQ(run_command("reckon completion tcsh").exit_code, 2);
}

TEST(VersionCommand, NamesTheBackendsOfTheBuild) {
  const Json json = Json::parse(run_command("reckon --version --json").out);
  EXPECT_TRUE(json["backends"].is_array());
}

}  // namespace
}  // namespace reckon::test
