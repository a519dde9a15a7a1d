#include "plan/load_plan.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "plan/method_preset.h"
#include "plan/plan_schema.h"
#include "tests/support/temporary_folder.h"

namespace reckon {
namespace {

const ConfigPaths kPaths{std::filesystem::path(RECKON_SOURCE_DIR) / "configs", "/nonexistent/local.yaml"};

const std::string kSmall = R"(reckon: 1
model: llama2-13b
hardware: a6000-48gb-8x
nodes: 8
batch: {sequence_length: 32768, micro_batch: 1, global_batch: 16}
parallel:
  data: 2
  pipeline: 4
  tensor: 8
)";

Plan parse(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  return parse_plan(yaml, "p.yaml", overrides, kPaths);
}

std::vector<Diagnostic> errors_of(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  try {
    parse(yaml, overrides);
  } catch (const ConfigError& error) {
    return error.diagnostics();
  }
  return {};
}

/// The one error that is expected.
std::string error_of(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  const std::vector<Diagnostic> errors = errors_of(yaml, overrides);
  EXPECT_EQ(errors.size(), 1u);
  return errors.empty() ? "" : to_string(errors.front());
}

TEST(LoadPlan, KeysReachTheirFields) {
  const Plan plan =
      parse(kSmall +
            "precision: {compute: fp32}\nactivations: {stored: int4, classes: {gate: recompute, up: nf4}}\n"
            "sim: {slow_ranks: {3: 1.5}}\nmemory: {limit: 44 GiB}\ntrain: {timeout: 2 min}\n");
  EXPECT_EQ(plan.model.layers, 40);
  EXPECT_EQ(plan.hardware.devices_per_node, 8);
  EXPECT_EQ(plan.nodes, 8);
  EXPECT_EQ(plan.batch.sequence_length, 32768);
  EXPECT_EQ(plan.parallel.tensor, 8);
  EXPECT_EQ(plan.world_size(), 64);
  EXPECT_EQ(plan.activations.stored, NumberFormat::int4);
  EXPECT_TRUE(plan.activations.classes.at(ActivationClass::gate).recompute);
  EXPECT_EQ(plan.activations.classes.at(ActivationClass::up).format, NumberFormat::nf4);
  EXPECT_EQ(plan.sim.slow_ranks.at(3), 1.5);
  EXPECT_EQ(plan.memory.limit->value, 44LL << 30);
  EXPECT_EQ(plan.train.timeout.value, 120);
  EXPECT_EQ(plan.source_file, "p.yaml");
}

TEST(LoadPlan, DefaultsAreThoseOfTheStructures) {
  const Plan plan = parse(kSmall);
  const Plan fresh;
  EXPECT_EQ(plan.parallel.zero, fresh.parallel.zero);
  EXPECT_EQ(plan.optimizer.learning_rate, fresh.optimizer.learning_rate);
  EXPECT_EQ(plan.gradients.bucket, fresh.gradients.bucket);
  EXPECT_EQ(plan.documents.placement, Placement::automatic);
  EXPECT_TRUE(plan.parallel.layers_per_stage.empty());
  EXPECT_FALSE(plan.memory.limit.has_value());
}

TEST(LoadPlan, StoredActivationsFollowTheComputePrecision) {
  EXPECT_EQ(parse(kSmall).activations.stored, NumberFormat::bf16);
  EXPECT_EQ(parse(kSmall + "precision: {compute: fp32}\n").activations.stored, NumberFormat::fp32);
  EXPECT_EQ(parse(kSmall + "precision: {compute: fp8_e4m3}\n").activations.stored, NumberFormat::bf16);
  EXPECT_EQ(parse(kSmall + "precision: {compute: fp32}\nactivations: {stored: bf16}\n").activations.stored,
            NumberFormat::bf16);
}

TEST(LoadPlan, GradientsTravelAsTheyAreStored) {
  EXPECT_EQ(parse(kSmall, {"gradients.stored=bf16"}).gradients.wire, NumberFormat::bf16);
  EXPECT_EQ(parse(kSmall, {"gradients.stored=bf16", "gradients.wire=fp32"}).gradients.wire, NumberFormat::fp32);
}

TEST(LoadPlan, AutoIsReadWhereTheDesignAllowsIt) {
  const Plan plan = parse(kSmall, {"nodes=auto", "parallel.zero_group=auto", "parallel.layers_per_stage=auto",
                                   "activations.bits_by_stage=auto", "activations.recompute_layers=auto",
                                   "memory.limit=auto", "documents.placement=auto"});
  EXPECT_EQ(plan.nodes, 0);
  EXPECT_EQ(plan.parallel.zero_group, 0);
  EXPECT_TRUE(plan.activations.recompute_layers.empty());
  EXPECT_NE(error_of(kSmall, {"parallel.tensor=auto"}).find("'auto' is not a whole number"), std::string::npos);
}

TEST(LoadPlan, ListsTakeOneNumberOrMany) {
  EXPECT_EQ(parse(kSmall, {"activations.recompute_layers=3"}).activations.recompute_layers,
            (std::vector<std::int64_t>{3}));
  EXPECT_EQ(parse(kSmall, {"parallel.layers_per_stage=[11, 10, 10, 9]"}).parallel.layers_per_stage,
            (std::vector<std::int64_t>{11, 10, 10, 9}));
  EXPECT_NE(error_of(kSmall, {"parallel.layers_per_stage=[]"}).find("empty"), std::string::npos);
  EXPECT_NE(error_of(kSmall, {"parallel.layers_per_stage=[10, -1]"}).find("out of range"), std::string::npos);
  EXPECT_NE(error_of(kSmall, {"parallel.layers_per_stage=[10, ten]"}).find("'ten'"), std::string::npos);
}

TEST(LoadPlan, EveryWrongKeyIsReportedInOneError) {
  const std::vector<Diagnostic> errors = errors_of(R"(model: llama2-13b
hardware: a6000-48gb-8x
batch: {sequence_length: 4096, global_batch: 16}
paralel: {data: 2}
parallel:
  tensr: 8
  pipeline: four
  sequence: 1
  zero: 4
memory: {limit: 40}
activations: {stored: bf17, block: 8}
optimizer: {learning_rate: 1e400}
train: [1]
)");
  ASSERT_EQ(errors.size(), 10u);
  EXPECT_EQ(to_string(errors[0]), "p.yaml:4:1: unknown key 'paralel'; did you mean 'parallel'?");
  EXPECT_EQ(to_string(errors[1]), "p.yaml:6:3: unknown key 'parallel.tensr'; did you mean 'parallel.tensor'?");
  EXPECT_NE(to_string(errors[2]).find("p.yaml:7:13: 'four' is not a whole number"), std::string::npos);
  EXPECT_EQ(to_string(errors[3]), "p.yaml:8:13: true or false is needed, found '1'");
  EXPECT_EQ(to_string(errors[4]), "p.yaml:9:9: 4 is out of range: 0 to 3");
  EXPECT_NE(to_string(errors[5]).find("p.yaml:10:17: '40' is not a size: the unit is missing"), std::string::npos);
  EXPECT_NE(errors[6].message.find("'bf17' is not one of"), std::string::npos);
  EXPECT_EQ(to_string(errors[7]), "p.yaml:11:36: 8 is out of range: 16 to 2048");
  EXPECT_NE(errors[8].message.find("too large"), std::string::npos);
  EXPECT_EQ(errors[8].key, "optimizer.learning_rate");
  EXPECT_EQ(to_string(errors[9]), "p.yaml:13:8: 'train' holds keys with values (key: value), found a list");
}

TEST(LoadPlan, AKeyInTheWrongSectionIsPointedToItsPlace) {
  EXPECT_EQ(error_of(kSmall + "tensor: 2\n"), "p.yaml:10:1: unknown key 'tensor'; did you mean 'parallel.tensor'?");
  EXPECT_EQ(error_of(kSmall + "optimizer: {seed: 2}\n"),
            "p.yaml:10:13: unknown key 'optimizer.seed'; did you mean 'train.seed' or 'sim.seed'?");
}

TEST(LoadPlan, MissingRequiredKeysAreNamed) {
  const std::vector<Diagnostic> errors = errors_of("parallel: {data: 2}\n");
  ASSERT_EQ(errors.size(), 4u);
  EXPECT_EQ(to_string(errors[0]), "p.yaml: the key 'model' is missing");
  EXPECT_EQ(errors[1].key, "hardware");
  EXPECT_EQ(errors[2].key, "batch.sequence_length");
  EXPECT_EQ(errors[3].key, "batch.global_batch");
}

TEST(LoadPlan, KeysGivenTwiceAreRefused) {
  EXPECT_EQ(error_of(kSmall + "nodes: 4\n"), "p.yaml:10:1: the key 'nodes' is given twice");
  EXPECT_EQ(error_of(kSmall + "parallel: {ring: 2}\n"), "p.yaml:10:1: the key 'parallel' is given twice");
  EXPECT_EQ(error_of(kSmall + "parallel.tensor: 2\n"), "p.yaml:10:1: the key 'parallel.tensor' is given twice");
}

TEST(LoadPlan, EmptyAndForeignFilesAreRefused) {
  EXPECT_EQ(error_of(""), "p.yaml: the file is empty; a plan needs at least model, hardware and batch");
  EXPECT_EQ(error_of("just text"), "p.yaml:1:1: a plan consists of keys with values (key: value), found 'just text'");
  EXPECT_EQ(error_of("[1, 2]"), "p.yaml:1:1: a plan consists of keys with values (key: value), found a list");
  EXPECT_NE(error_of("reckon: 2\n" + kSmall.substr(10)).find("this is version 2 of the plan format"),
            std::string::npos);
}

TEST(LoadPlan, ARowOf64kTokensIsAmbiguous) {
  EXPECT_EQ(error_of(kSmall, {"batch.sequence_length=64k"}),
            "batch.sequence_length=64k: '64k' tokens may mean 64000 or 65536; write one of the two");
  EXPECT_EQ(parse(kSmall, {"batch.sequence_length=64Ki"}).batch.sequence_length, 65536);
}

TEST(LoadPlan, AnEmptySectionIsNoError) {
  EXPECT_EQ(errors_of(kSmall + "sim:\n").size(), 0u);
}

TEST(LoadPlan, UnknownNamesOfModelAndHardwareSuggestTheNearest) {
  const std::vector<Diagnostic> errors =
      errors_of("model: llama2-31b\nhardware: a6000-48gb-8y\nbatch: {sequence_length: 1, global_batch: 1}\n");
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0].key, "model");
  EXPECT_EQ(errors[0].line, 1);
  EXPECT_NE(errors[0].message.find("llama2-13b"), std::string::npos);
  EXPECT_NE(
      to_string(errors[1]).find("p.yaml:2:11: there is no hardware 'a6000-48gb-8y'; did you mean 'a6000-48gb-8x'?"),
      std::string::npos);
}

TEST(LoadPlan, ModelAndHardwareMayBeChangedInPlace) {
  const Plan plan = parse(R"(model: {base: llama2-13b, layers: 4}
hardware: {base: a6000-48gb-8x, device: {memory: 40 GiB}}
batch: {sequence_length: 1024, global_batch: 4}
)",
                          {"hardware.devices_per_node=4", "model.hidden=4096", "model.heads=32", "model.kv_heads=32"});
  EXPECT_EQ(plan.model.layers, 4);
  EXPECT_EQ(plan.model.hidden, 4096);
  EXPECT_EQ(plan.model.vocabulary, 32000);
  EXPECT_EQ(plan.hardware.device.memory.value, 40LL << 30);
  EXPECT_EQ(plan.hardware.devices_per_node, 4);
  EXPECT_EQ(plan.hardware.device.multiprocessors, 84);
  const std::vector<Diagnostic> errors = errors_of(
      "model: {base: llama2-13b, layrs: 4}\nhardware: a6000-48gb-8x\nbatch: {sequence_length: 1024, global_batch: "
      "4}\n");
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_NE(to_string(errors[0]).find("p.yaml:1:27: unknown key 'layrs'"), std::string::npos) << to_string(errors[0]);
  EXPECT_EQ(errors[0].key, "model.layrs");
}

TEST(LoadPlan, RelativePathsStandBesideThePlan) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(kPaths.configs / "hardware/h100-80gb-8x.yaml", folder.path() / "mine.yaml");
  const auto plan = folder.write(
      "plan.yaml", "model: llama2-13b\nhardware: mine.yaml\nbatch: {sequence_length: 1024, global_batch: 4}\n");
  EXPECT_EQ(load_plan(plan, {}, kPaths).hardware.name, "h100-80gb-8x");
}

TEST(LoadPlan, ErrorsInsideAHardwareFileNameThatFile) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.write("bad.yaml", "name: x\n");
  const std::vector<Diagnostic> errors = errors_of(kSmall, {"hardware=" + file.string()});
  ASSERT_FALSE(errors.empty());
  EXPECT_EQ(errors.front().file, file.string());
}

TEST(LoadPlan, UnreadableFilesAreNamed) {
  const TemporaryFolder folder;
  const auto message = [](const std::filesystem::path& file) -> std::string {
    try {
      load_plan(file, {}, kPaths);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_EQ(message(folder.path() / "none.yaml"), (folder.path() / "none.yaml").string() + ": there is no such file");
  EXPECT_EQ(message(folder.path()), folder.path().string() + ": this is a directory, not a file");
  EXPECT_EQ(
      message(folder.write("empty.yaml", "")),
      (folder.path() / "empty.yaml").string() + ": the file is empty; a plan needs at least model, hardware and batch");
  EXPECT_NE(message(folder.write("latin.yaml", "model: caf\xe9\n"))
                .find("latin.yaml:1:11: byte 0xE9 is not valid UTF-8 text"),
            std::string::npos);
  std::filesystem::create_symlink("loop.yaml", folder.path() / "loop.yaml");
  EXPECT_NE(message(folder.path() / "loop.yaml"), "");
}

TEST(Overrides, AreTypedAndTheLastOneWins) {
  const Plan plan =
      parse(kSmall, {"parallel.tensor=2", "parallel.tensor=4", "batch.micro-batch=2", "optimizer.learning_rate=1e-3",
                     "parallel.sequence=true", "train.data=/a b#c: d", "memory.limit=80 GiB"});
  EXPECT_EQ(plan.parallel.tensor, 4);
  EXPECT_EQ(plan.batch.micro_batch, 2);
  EXPECT_EQ(plan.optimizer.learning_rate, 1e-3);
  EXPECT_TRUE(plan.parallel.sequence);
  EXPECT_EQ(plan.train.data, "/a b#c: d");
  EXPECT_EQ(plan.memory.limit->value, 80LL << 30);
}

TEST(Overrides, ReachMappingsAndSections) {
  const Plan plan = parse(kSmall, {"activations.classes={up: recompute}", "activations.classes.gate=int4",
                                   "sim.slow_ranks.3=1.5", "parallel={data: 4, tensor: 4}", "model=llama2-7b"});
  EXPECT_EQ(plan.activations.classes.at(ActivationClass::gate).format, NumberFormat::int4);
  EXPECT_TRUE(plan.activations.classes.at(ActivationClass::up).recompute);
  EXPECT_EQ(plan.sim.slow_ranks.at(3), 1.5);
  EXPECT_EQ(plan.parallel.data, 4);
  EXPECT_EQ(plan.parallel.tensor, 4);
  EXPECT_EQ(plan.model.layers, 32);
}

TEST(Overrides, WholeMappingsReplaceWhatStoodBefore) {
  const Plan plan = parse(
      kSmall, {"method=agoq", "activations.classes={up: recompute}", "sim.slow_ranks.3=1.5", "sim.slow_ranks={5: 2}"});
  EXPECT_EQ(plan.activations.classes.size(), 1u);
  EXPECT_TRUE(plan.activations.classes.at(ActivationClass::up).recompute);
  EXPECT_EQ(plan.sim.slow_ranks, (std::map<std::int64_t, double>{{5, 2.0}}));
}

TEST(Overrides, AreRefusedWithTheirText) {
  EXPECT_EQ(error_of(kSmall, {"parallel.tensor"}),
            "'parallel.tensor' is not an override; write key=value, such as parallel.tensor=4");
  EXPECT_EQ(error_of(kSmall, {"=4"}), "'=4' is not an override; write key=value, such as parallel.tensor=4");
  EXPECT_EQ(error_of(kSmall, {"paralel.tensor=4"}),
            "paralel.tensor=4: unknown key 'paralel.tensor'; did you mean 'parallel.tensor'?");
  EXPECT_NE(error_of(kSmall, {"parallel.tensor=x"}).find("parallel.tensor=x: 'x' is not a whole number"),
            std::string::npos);
  EXPECT_NE(error_of(kSmall, {"parallel.tensor="}).find("a whole number is needed, found nothing"), std::string::npos);
  EXPECT_NE(error_of(kSmall, {"parallel.layers_per_stage=[1, 2"}).find("is a closing bracket missing?"),
            std::string::npos);
  EXPECT_NE(error_of(kSmall, {"parallel=3"}).find("parallel"), std::string::npos);
  EXPECT_NE(error_of(kSmall, {"activations.classes.gat=int4"}).find("'gat' is not one of"), std::string::npos);
  EXPECT_NE(error_of(kSmall, {"sim.slow_ranks.x=2"}).find("'x' is not a whole number"), std::string::npos);
  EXPECT_NE(error_of(kSmall, {"hardware.devices_per_nod=4"}).find("devices_per_node"), std::string::npos);
  EXPECT_NE(error_of(kSmall, {"parallel.tensor=\xff"}).find("UTF-8"), std::string::npos);
  EXPECT_EQ(errors_of(kSmall, {"parallel.tensor=x"}).front().key, "parallel.tensor");
}

TEST(Presets, KeysOfTheFileOverrideThePreset) {
  const Plan agoq = parse(kSmall + "method: agoq\nactivations: {stored: nf4}\n");
  EXPECT_EQ(agoq.method, "agoq");
  EXPECT_EQ(agoq.activations.stored, NumberFormat::nf4);
  EXPECT_TRUE(agoq.activations.classes.at(ActivationClass::qkv_input).recompute);
  EXPECT_EQ(agoq.gradients.reduce, GradientReduce::all_to_all_sum);
  EXPECT_EQ(agoq.gradients.wire, NumberFormat::fp8_e4m3);
  const Plan zero1 = parse(kSmall + "method: agoq\n", {"method=zero1"});
  EXPECT_EQ(zero1.method, "zero1");
  EXPECT_EQ(zero1.parallel.zero, 1);
  EXPECT_EQ(zero1.gradients.stored, NumberFormat::fp32);  // nothing of agoq is left
  EXPECT_EQ(parse(kSmall, {"method=zero1", "parallel.zero=0"}).parallel.zero, 0);
  EXPECT_EQ(parse(kSmall, {"method=none"}).method, "");
}

TEST(Presets, AllOfThemLoadAndUnknownOnesAreRefused) {
  for (const MethodPreset& preset : method_presets()) {
    EXPECT_EQ(errors_of(kSmall, {"method=" + preset.name}).size(), 0u) << preset.name;
  }
  EXPECT_EQ(parse(kSmall, {"method=packing"}).documents.attention, AttentionScope::whole_row);
  EXPECT_EQ(parse(kSmall, {"method=batching"}).documents.rows, Rows::padded);
  EXPECT_EQ(parse(kSmall, {"method=hsap"}).documents.attention, AttentionScope::per_document);
  EXPECT_EQ(parse(kSmall, {"method=megatron"}).activations.recompute, Recompute::full);
  EXPECT_NE(error_of(kSmall, {"method=agog"}).find("did you mean 'agoq'"), std::string::npos);
}

/// Every key set to something that is not its default.
const std::vector<std::string> kEverything = {"nodes=3",
                                              "method=zero1",
                                              "batch.micro_batch=2",
                                              "parallel.data=3",
                                              "parallel.sequence=true",
                                              "parallel.ulysses=2",
                                              "parallel.ring=4",
                                              "parallel.expert=5",
                                              "parallel.expert_imbalance=1.25",
                                              "parallel.zero=3",
                                              "parallel.zero_group=2",
                                              "parallel.schedule=interleaved",
                                              "parallel.chunks=2",
                                              "parallel.layers_per_stage=[5,5,5,5,5,5,5,5]",
                                              "documents.source=fineweb",
                                              "documents.rows=padded",
                                              "documents.packer=best_fit",
                                              "documents.attention=whole_row",
                                              "documents.placement=striped",
                                              "precision.compute=fp16",
                                              "precision.master=bf16",
                                              "kernels.attention=unfused",
                                              "kernels.loss=chunked",
                                              "kernels.activation=unfused",
                                              "kernels.dropout=true",
                                              "kernels.pending_collectives=55",
                                              "activations.method=optimal",
                                              "activations.error_weight=0.5",
                                              "activations.errors={gate: 0.04}",
                                              "activations.stored=int5",
                                              "activations.classes={gate: recompute, up: [bf16, int4]}",
                                              "activations.block=256",
                                              "activations.scale=fp32",
                                              "activations.rounding=stochastic",
                                              "activations.bits_by_stage=[4,5,6,8]",
                                              "activations.recompute=selective",
                                              "activations.recompute_layers=[1,0,2,0]",
                                              "gradients.stored=int8",
                                              "gradients.wire=bf16",
                                              "gradients.reduce=all_to_all_sum",
                                              "gradients.exchange=hierarchical",
                                              "gradients.bucket=25 MiB",
                                              "gradients.rounding=stochastic",
                                              "gradients.plain_below=1 MiB",
                                              "gradients.bucket_copies=true",
                                              "memory.workspace=64 MiB",
                                              "optimizer.kind=sgd",
                                              "optimizer.states=int8",
                                              "optimizer.learning_rate=0.001",
                                              "optimizer.minimum_learning_rate=1e-5",
                                              "optimizer.warmup_steps=7",
                                              "optimizer.schedule=cosine",
                                              "optimizer.beta1=0.8",
                                              "optimizer.beta2=0.999",
                                              "optimizer.epsilon=1e-6",
                                              "optimizer.weight_decay=0",
                                              "optimizer.clip_gradient_norm=0.5",
                                              "memory.limit=123456789 B",
                                              "train.steps=9",
                                              "train.seed=9007199254740993",
                                              "train.data=a: b #c",
                                              "train.tokenizer=null",
                                              "train.initial_weights=weights.safetensors",
                                              "train.checkpoint_every=5",
                                              "train.keep_checkpoints=3",
                                              "train.warmup=0",
                                              "train.timeout=12.5ms",
                                              "sim.seed=4",
                                              "sim.jitter=0.05",
                                              "sim.slow_ranks={2: 1.25}",
                                              "sim.network_scale=2",
                                              "sim.compute_scale=0.5",
                                              "sim.free_overlap=true",
                                              "sim.free_communication=true"};

TEST(WritePlan, ReadsBackToTheSamePlanWithEveryKeyChanged) {
  const Plan plan = parse(kSmall, kEverything);
  const std::string text = write_plan(plan);
  const Plan back = parse(text);
  for (const PlanKey& key : plan_keys()) {
    EXPECT_EQ(write_yaml(key.get(back)), write_yaml(key.get(plan))) << key.path;
    const bool fixed = key.path == "reckon" || key.required;
    if (!fixed && key.path != "parallel.pipeline" && key.path != "parallel.tensor") {
      EXPECT_NE(write_yaml(key.get(plan)), write_yaml(key.get(Plan{}))) << key.path << " is not covered by kEverything";
    }
  }
  EXPECT_EQ(write_plan(back), text);
  EXPECT_EQ(back.train.seed, 9007199254740993u);  // above 2^53
  EXPECT_EQ(back.train.tokenizer, "null");
}

TEST(WritePlan, NeedsNoConfigsToReadBack) {
  const std::string text = write_plan(parse(kSmall));
  EXPECT_EQ(write_plan(parse_plan(text, "p.yaml", {}, ConfigPaths{})), text);
}

TEST(PlanSchema, EveryKeyIsDescribedOnceAndInOrderOfItsSections) {
  std::vector<std::string> paths;
  for (const PlanKey& key : plan_keys()) {
    EXPECT_EQ(std::count(paths.begin(), paths.end(), key.path), 0) << key.path;
    EXPECT_FALSE(key.meaning.empty()) << key.path;
    EXPECT_FALSE(key.type.empty()) << key.path;
    EXPECT_FALSE(key.default_text.empty()) << key.path;
    paths.push_back(key.path);
  }
}

TEST(PlanSchema, TheKeyTableOfTheDocumentationIsCurrent) {
  const std::filesystem::path file = kPaths.configs / "README.md";
  std::ifstream stream(file);
  const std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  const std::string begin = "<!-- keys: generated from plan/plan_key_rows.cpp -->\n", end = "<!-- end of keys -->";
  const std::size_t first = text.find(begin), last = text.find(end);
  ASSERT_NE(first, std::string::npos);
  ASSERT_NE(last, std::string::npos);
  const std::string table = text.substr(first + begin.size(), last - first - begin.size());
  if (table != plan_key_table() && std::getenv("RECKON_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(file) << text.substr(0, first + begin.size()) << plan_key_table() << text.substr(last);
    GTEST_SKIP() << "rewrote the table in " << file;
  }
  EXPECT_EQ(table, plan_key_table()) << "run this test once with RECKON_UPDATE_GOLDEN=1 to rewrite configs/README.md";
}

TEST(Overrides, WhatIfScalesStayWithinSixPowersOfTen) {
  EXPECT_EQ(parse(kSmall, {"sim.network_scale=1e6", "sim.compute_scale=1e-6"}).sim.network_scale, 1e6);
  for (const char* one : {"sim.network_scale=1e7", "sim.compute_scale=1e-7", "sim.compute_scale=0"})
    EXPECT_NE(error_of(kSmall, {one}).find(one), std::string::npos) << one;
}

}  // namespace
}  // namespace reckon
