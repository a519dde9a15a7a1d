// What became of each field of a file: every one stands in a list, and in the right one.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "plan/errors.h"
#include "plan/exchange/foreign_plan.h"
#include "plan/exchange/shell_arguments.h"
#include "plan/exchange/source_fields.h"
#include "plan/exchange/toml_document.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;
using List = std::vector<ForeignField>;

ForeignPlan imported(const std::string& text, ForeignKind kind, std::int64_t devices = 0) {
  ImportOptions options;
  options.kind = kind;
  options.devices = devices;
  return import_plan(text, "file", options);
}

const ForeignField* find_in(const List& list, const std::string& key) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const ForeignField& one) { return one.key == key; });
  return found == list.end() ? nullptr : &*found;
}

/// The fields that are in the file, read without any reader.
std::vector<SourceField> fields_of(const std::string& text, ForeignKind kind) {
  if (kind == ForeignKind::torchtitan) return flattened(parse_toml(text, "file"));
  if (kind == ForeignKind::megatron && text.find("MODEL_ARGS:") == std::string::npos)
    return shell_arguments(text).options;
  std::string plain = text;
  std::replace(plain.begin(), plain.end(), '\t', ' ');
  const YamlValue document = parse_yaml(plain, "file");
  return flattened(kind == ForeignKind::megatron ? *document.find("MODEL_ARGS") : document);
}

TEST(ImportLists, EveryFieldOfEveryFileStandsInOne) {
  int files = 0, fields = 0;
  for (const char* name : {"megatron", "deepspeed", "torchtitan", "nanotron", "accelerate"}) {
    const ForeignKind kind = *foreign_kind(name);
    for (const auto& entry : fs::directory_iterator(fs::path(RECKON_SOURCE_DIR) / "tests/exchange/files" / name)) {
      const std::string text = read_text_file(entry.path());
      ForeignPlan plan;
      try {
        plan = imported(text, kind);
      } catch (const Error&) {
        continue;  // refused on purpose
      }
      std::set<std::pair<std::string, int>> listed;
      for (const List& list : {plan.used, plan.assumed, plan.not_modelled, plan.ignored, plan.not_understood})
        for (const ForeignField& field : list) listed.insert({field.key, field.line});
      for (const SourceField& field : fields_of(text, kind)) {
        EXPECT_TRUE(listed.contains({field.key, field.line})) << entry.path() << ": " << field.key << " " << field.line;
        ++fields;
      }
      ++files;
    }
  }
  EXPECT_GE(files, 20);
  EXPECT_GE(fields, 400);
}

TEST(ImportLists, NotOffloadedIsSaidToHaveNoInfluence) {
  const ForeignPlan plan = imported(R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "none"}}})",
                                    ForeignKind::deepspeed, 8);
  ASSERT_NE(find_in(plan.ignored, "zero_optimization.offload_optimizer.device"), nullptr);
  EXPECT_TRUE(plan.not_understood.empty());
}

TEST(ImportLists, WhatTheToolHidesOrFetchesAheadHasAnEffect) {
  const ForeignPlan plan = imported(
      R"({"zero_optimization": {"stage": 3, "overlap_comm": true, "sub_group_size": 1e9,
          "stage3_max_live_parameters": 1e9, "stage3_prefetch_bucket_size": 5e8}})",
      ForeignKind::deepspeed, 8);
  for (const char* name :
       {"overlap_comm", "sub_group_size", "stage3_max_live_parameters", "stage3_prefetch_bucket_size"}) {
    const ForeignField* field = find_in(plan.not_modelled, std::string("zero_optimization.") + name);
    ASSERT_NE(field, nullptr) << name;
    EXPECT_FALSE(field->note.empty()) << name;
  }
  EXPECT_TRUE(plan.ignored.empty());
}

const std::string kScript =
    "--num-layers 12 --hidden-size 64 --num-attention-heads 4 --vocab-size 128 --seq-length 32 "
    "--max-position-embeddings 32 --micro-batch-size 1 --global-batch-size 128 --bf16 ";

TEST(ImportLists, OverlapOfMegatronHasAnEffectGivenOrNot) {
  const ForeignPlan with =
      imported(kScript + "--tp-comm-overlap --overlap-grad-reduce --overlap-param-gather", ForeignKind::megatron, 8);
  for (const char* name : {"--tp-comm-overlap", "--overlap-grad-reduce", "--overlap-param-gather"}) {
    ASSERT_NE(find_in(with.not_modelled, name), nullptr) << name;
    EXPECT_EQ(find_in(with.ignored, name), nullptr) << name;
  }
  const ForeignPlan without = imported(kScript, ForeignKind::megatron, 8);
  const ForeignField* exposed = find_in(without.not_modelled, "--overlap-grad-reduce");
  ASSERT_NE(exposed, nullptr);
  EXPECT_EQ(exposed->value, "false");
  EXPECT_EQ(exposed->line, 0);
  EXPECT_TRUE(imported(kScript, ForeignKind::megatron, 1).not_modelled.empty());  // nothing is reduced
}

TEST(ImportLists, ClippingThatTheTrainerFillsInIsSaidOnce) {
  const ForeignPlan plan =
      imported(R"({"gradient_clipping": "auto", "zero_optimization": {"stage": 2}})", ForeignKind::deepspeed, 8);
  EXPECT_EQ(plan.plan.find("optimizer")->find("clip_gradient_norm")->text, "1");
  EXPECT_EQ(find_in(plan.defaults, "gradient_clipping"), nullptr);
  const ForeignField* field = find_in(plan.assumed, "gradient_clipping");
  ASSERT_NE(field, nullptr);
  EXPECT_NE(field->note.find("max_grad_norm"), std::string::npos) << field->note;
  EXPECT_NE(field->note.find("1 is taken"), std::string::npos) << field->note;
  const ForeignPlan absent = imported(R"({"zero_optimization": {"stage": 2}})", ForeignKind::deepspeed, 8);
  EXPECT_EQ(absent.plan.find("optimizer")->find("clip_gradient_norm")->text, "0");  // DeepSpeed does not clip unasked
}

TEST(ImportLists, FieldsLeftToTheTrainerShareOneLineOfThePlanFile) {
  const ForeignPlan plan = imported(
      read_text_file(fs::path(RECKON_SOURCE_DIR) / "tests/exchange/files/deepspeed/gptj.json"), ForeignKind::deepspeed);
  const std::string text = foreign_plan_text(plan);
  EXPECT_EQ(text.find("# Assumed: auto"), text.rfind("# Assumed: auto")) << text;
  EXPECT_NE(text.find("optimizer.params.lr, optimizer.params.eps"), std::string::npos) << text;
}

TEST(ImportLists, TheLastOfSeveralCountsAndTheOthersAreListed) {
  const ForeignPlan plan = imported(kScript + "--lr 1e-4 --lr 2e-4", ForeignKind::megatron, 8);
  EXPECT_EQ(find_in(plan.used, "--lr")->value, "2e-4");
  EXPECT_EQ(find_in(plan.ignored, "--lr")->value, "1e-4");
  ASSERT_EQ(plan.warnings.size(), 1u);
}

/// torchrun on 16 nodes of 8 devices, as a job of Slurm has it.
std::string job(const std::string& lines, const std::string& nodes = "$SLURM_NNODES",
                const std::string& devices = "8") {
  return "#!/bin/bash\n" + lines + "\nsrun torchrun --nnodes " + nodes + " --nproc_per_node " + devices +
         " pretrain_gpt.py " + kScript + "\n";
}

std::string data_of(const ForeignPlan& plan) {
  return plan.plan.find("parallel")->find("data")->text;
}

TEST(ImportSlurm, VariablesComeFromTheLinesOfTheJob) {
  struct Case {
    std::string lines, nodes, devices;
  };
  for (const Case& one : std::vector<Case>{
           {"#SBATCH --nodes=16", "$SLURM_NNODES", "8"},
           {"#SBATCH -N 16", "${SLURM_JOB_NUM_NODES}", "8"},
           {"#SBATCH -N16 # nodes\n#SBATCH --gpus-per-node=8", "$SLURM_NNODES", "$SLURM_GPUS_PER_NODE"},
           {"#SBATCH --nodes 16\n#SBATCH --gres=gpu:8", "${SLURM_NNODES:-1}", "$SLURM_GPUS_ON_NODE"},
           {"#SBATCH --nodes 16\n#SBATCH --gres=gpu:a100:8\nNODES=$SLURM_NNODES", "$NODES", "$SLURM_GPUS_ON_NODE"},
           {"#SBATCH --nodes=16\n#SBATCH --ntasks-per-node=8", "$((SLURM_NTASKS / SLURM_NTASKS_PER_NODE))", "8"}})
    EXPECT_EQ(data_of(imported(job(one.lines, one.nodes, one.devices), ForeignKind::megatron)), "128") << one.lines;
}

TEST(ImportSlurm, LinesOfTheJobDecideWithoutALauncher) {
  const std::string command = "\nsrun python pretrain_gpt.py " + kScript;
  EXPECT_EQ(data_of(imported("#SBATCH --nodes=4\n#SBATCH --gres=gpu:8\n#SBATCH --exclusive" + command,
                             ForeignKind::megatron)),
            "32");
  EXPECT_EQ(data_of(imported("#SBATCH -n 64" + command, ForeignKind::megatron)), "64");
}

TEST(ImportSlurm, ALineWithoutValueIsListed) {
  const ForeignPlan plan = imported(job("#SBATCH --nodes=16\n#SBATCH --exclusive"), ForeignKind::megatron);
  EXPECT_NE(find_in(plan.ignored, "#SBATCH --exclusive"), nullptr);
}

TEST(ImportSlurm, WhatNothingSetsIsDecidedByDevices) {
  EXPECT_EQ(data_of(imported(job(""), ForeignKind::megatron, 128)), "128");
  try {
    imported(job(""), ForeignKind::megatron);
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    const std::string text = to_string(error.diagnostics().front());
    EXPECT_NE(text.find("--nnodes is $SLURM_NNODES"), std::string::npos) << text;
    EXPECT_NE(text.find("--devices N"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace reckon
