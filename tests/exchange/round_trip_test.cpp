// Import, export, import again: the words of a tool, as far as they reach, are said and understood alike.
#include <gtest/gtest.h>

#include <filesystem>

#include "plan/errors.h"
#include "plan/exchange/export_plan.h"
#include "plan/exchange/foreign_plan.h"
#include "plan/load_plan.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;

const ConfigPaths kPaths{std::string(RECKON_SOURCE_DIR) + "/configs", {}};

std::vector<fs::path> files_of(const std::string& kind) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(fs::path(RECKON_SOURCE_DIR) / "tests/exchange/files" / kind))
    found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

ForeignPlan import_text(const std::string& text, ForeignKind kind, std::int64_t devices) {
  ImportOptions options;
  options.kind = kind;
  options.devices = devices;
  return import_plan(text, "same-name", options);
}

/// The plan of an import; what DeepSpeed's file cannot say is taken from `whole`.
Plan loaded(const ForeignPlan& imported, const std::vector<std::string>& overrides = {}) {
  return parse_plan(foreign_plan_text(imported), "same-name", overrides, kPaths);
}

/// Plans of a kind's files; those that are refused on purpose are left out.
std::vector<Plan> plans_of(const std::string& kind) {
  std::vector<Plan> plans;
  for (const fs::path& file : files_of(kind)) {
    try {
      const ForeignPlan imported = import_text(read_text_file(file), *foreign_kind(kind), kind == "deepspeed" ? 16 : 0);
      std::vector<std::string> overrides;
      if (!imported.missing.empty()) overrides = {"model=llama2-7b", "batch.sequence_length=4096"};
      const Plan plan = loaded(imported, overrides);
      if (check_plan(plan).empty()) plans.push_back(plan);
    } catch (const Error&) {
      continue;
    }
  }
  return plans;
}

TEST(RoundTrip, MegatronGivesTheSamePlanToTheKey) {
  const std::vector<Plan> plans = plans_of("megatron");
  ASSERT_GE(plans.size(), 6u);
  for (Plan plan : plans) {
    plan.model.name = "same-name";
    const ForeignFile first = export_megatron(plan);
    const Plan again = loaded(import_text(first.text, ForeignKind::megatron, 0));
    EXPECT_EQ(write_plan(again), write_plan(plan));
    EXPECT_EQ(export_megatron(again).text, first.text);
    EXPECT_TRUE(first.lost.empty()) << first.lost.front();
  }
}

TEST(RoundTrip, TorchTitanGivesTheSamePlanToTheKey) {
  const std::vector<Plan> plans = plans_of("torchtitan");
  ASSERT_GE(plans.size(), 5u);
  for (const Plan& plan : plans) {
    const ForeignFile first = export_torchtitan(plan);
    const ForeignPlan imported = import_text(first.text, ForeignKind::torchtitan, plan.world_size());
    EXPECT_TRUE(imported.not_understood.empty()) << imported.not_understood.front().key;
    EXPECT_EQ(write_plan(loaded(imported)), write_plan(plan));
    EXPECT_EQ(export_torchtitan(loaded(imported)).text, first.text);
  }
}

TEST(RoundTrip, DeepSpeedGivesTheSameFile) {
  const std::vector<Plan> plans = plans_of("deepspeed");
  ASSERT_GE(plans.size(), 5u);
  for (const Plan& plan : plans) {
    const ForeignFile first = export_deepspeed(plan);
    const ForeignPlan imported = import_text(first.text, ForeignKind::deepspeed, plan.world_size());
    EXPECT_TRUE(imported.not_understood.empty()) << imported.not_understood.front().key;
    const Plan again = loaded(imported, {"model=llama2-7b", "batch.sequence_length=4096"});
    EXPECT_EQ(export_deepspeed(again).text, first.text);
    EXPECT_EQ(again.parallel.zero, plan.parallel.zero);
    EXPECT_EQ(again.batch.global_batch, plan.batch.global_batch);
    EXPECT_EQ(again.gradients.bucket, plan.gradients.bucket);
    EXPECT_EQ(again.optimizer.schedule, plan.optimizer.schedule);
  }
}

TEST(RoundTrip, EveryShippedPlanCanBeSaidToMegatronAndComesBack) {
  int plans = 0;
  for (const auto& entry : fs::directory_iterator(kPaths.configs / "plans")) {
    Plan plan = load_plan(entry.path(), {"hardware=h100-80gb-8x"}, kPaths);
    const ForeignFile first = export_megatron(plan);
    const ForeignPlan imported = import_text(first.text, ForeignKind::megatron, 0);
    EXPECT_TRUE(imported.not_understood.empty()) << entry.path() << imported.not_understood.front().key;
    const Plan again = loaded(imported);
    EXPECT_EQ(again.world_size(), plan.world_size()) << entry.path();
    EXPECT_EQ(again.model.layers, plan.model.layers) << entry.path();
    EXPECT_EQ(again.batch.global_batch, plan.batch.global_batch) << entry.path();
    EXPECT_EQ(export_megatron(loaded(import_text(export_megatron(again).text, ForeignKind::megatron, 0))).text,
              export_megatron(again).text)
        << entry.path();
    ++plans;
  }
  EXPECT_GE(plans, 10);
}

/// The plan hides what Megatron-LM hides only when told, so the script tells it; buckets are counted in elements there.
TEST(Export, MegatronIsToldWhatThePlanHides) {
  const auto script = [](const std::vector<std::string>& overrides) {
    return export_megatron(load_plan(kPaths.configs / "plans/llama3.1-8b-h100-node.yaml", overrides, kPaths)).text;
  };
  const std::string sharded = script({"parallel.zero=3", "parallel.data=8", "parallel.tensor=1"});
  EXPECT_NE(sharded.find("--overlap-grad-reduce\n"), std::string::npos) << sharded;
  EXPECT_NE(sharded.find("--overlap-param-gather\n"), std::string::npos) << sharded;
  const std::string one = script({"parallel.zero=1", "parallel.data=8", "parallel.tensor=1", "gradients.stored=fp32",
                                  "gradients.wire=fp32", "gradients.bucket=80 MB"});
  EXPECT_NE(one.find("--overlap-grad-reduce\n"), std::string::npos) << one;
  EXPECT_EQ(one.find("--overlap-param-gather"), std::string::npos) << one;  // the plan waits for ZeRO-1's gather
  EXPECT_NE(one.find("--ddp-bucket-size 20000000\n"), std::string::npos) << one;
  EXPECT_EQ(loaded(import_text(one, ForeignKind::megatron, 0)).gradients.bucket, Bytes(80000000));
  const std::string alone = script({"parallel.zero=0", "parallel.data=1", "parallel.tensor=8"});
  EXPECT_EQ(alone.find("  --overlap-"), std::string::npos) << alone;
}

TEST(Export, NamesWhatTheToolCannotBeTold) {
  Plan plan = load_plan(kPaths.configs / "plans/llama3.1-8b-h100-node.yaml",
                        {"activations.stored=int4", "gradients.reduce=all_to_all_sum", "documents.source=fineweb",
                         "kernels.loss=chunked"},
                        kPaths);
  for (const ForeignFile& file : {export_megatron(plan), export_deepspeed(plan), export_torchtitan(plan)}) {
    const std::string all = [&] {
      std::string text;
      for (const std::string& one : file.lost) text += one + "\n";
      return text;
    }();
    for (const char* key : {"activations.stored int4", "gradients.reduce all_to_all_sum", "documents.source fineweb",
                            "kernels.loss chunked"})
      EXPECT_NE(all.find(key), std::string::npos) << key << " in " << all;
  }
}

}  // namespace
}  // namespace reckon
