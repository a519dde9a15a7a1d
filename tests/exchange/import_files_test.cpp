// Launch files as people have them, with the traps they contain: what each must become, worked out by hand from the
// file and the defaults of its tool.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "plan/errors.h"
#include "plan/exchange/foreign_plan.h"
#include "plan/load_plan.h"
#include "plan/parameters.h"

namespace reckon {
namespace {

std::string file_of(const std::string& name) {
  return std::string(RECKON_SOURCE_DIR) + "/tests/exchange/files/" + name;
}

struct Expectation {
  std::string file;
  std::int64_t devices = 0;
  std::vector<std::pair<std::string, std::string>> keys;  // of the plan
  std::vector<std::string> not_understood;                // source keys, all of them
  std::vector<std::string> warnings;                      // a part of each, all of them
  std::vector<std::string> missing;
};

ForeignPlan import_file(const std::string& name, std::int64_t devices = 0) {
  ImportOptions options;
  options.devices = devices;
  return import_plan(read_text_file(file_of(name)), file_of(name), options);
}

/// A scalar, or "[a, b]".
std::string value_at(const YamlValue& tree, const std::string& path) {
  const std::size_t dot = path.find('.');
  const YamlValue* value = tree.find(path.substr(0, dot));
  if (value == nullptr) return "absent";
  if (dot != std::string::npos) return value_at(*value, path.substr(dot + 1));
  if (value->kind != YamlValue::Kind::sequence) return value->text;
  std::string text;
  for (const YamlValue& item : value->items) text += (text.empty() ? "" : ", ") + item.text;
  return "[" + text + "]";
}

void check(const Expectation& expected) {
  SCOPED_TRACE(expected.file);
  const ForeignPlan plan = import_file(expected.file, expected.devices);
  EXPECT_EQ(name_of(plan.kind), expected.file.substr(0, expected.file.find('/')));
  for (const auto& [key, value] : expected.keys) EXPECT_EQ(value_at(plan.plan, key), value) << key;
  std::vector<std::string> unknown;
  for (const ForeignField& field : plan.not_understood) {
    unknown.push_back(field.key);
    EXPECT_GT(field.line, 0) << field.key;
  }
  EXPECT_EQ(std::set(unknown.begin(), unknown.end()),
            std::set(expected.not_understood.begin(), expected.not_understood.end()));
  EXPECT_EQ(plan.warnings.size(), expected.warnings.size());
  for (const std::string& part : expected.warnings)
    EXPECT_TRUE(std::any_of(plan.warnings.begin(), plan.warnings.end(), [&](const std::string& one) {
      return one.find(part) != std::string::npos;
    })) << part;
  EXPECT_EQ(plan.missing, expected.missing);
}

/// The plan of a file whose plan is whole, loaded as a command would.
Plan loaded(const std::string& name) {
  const ConfigPaths paths{std::string(RECKON_SOURCE_DIR) + "/configs", {}};
  return parse_plan(foreign_plan_text(import_file(name)), name, {}, paths);
}

std::string refusal(const std::string& name, std::int64_t devices, ExitCode code) {
  try {
    import_file(name, devices);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), code);
    return to_string(error.diagnostics().front());
  }
  return "accepted";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ImportMegatron, GptOnSixteenNodes) {
  check({"megatron/gpt3-175b.sh",
         0,
         {{"model.layers", "96"},
          {"model.ffn_hidden", "49152"},  // default: 4 x 12288
          {"model.vocabulary", "51200"},  // 50257 up to a multiple of 128 x 8
          {"model.tied_head", "true"},    // default
          {"parallel.data", "1"},         // 8 x 16 ranks / (8 x 16)
          {"precision.compute", "fp16"},
          {"gradients.stored", "fp16"},  // --fp16 alone does not accumulate in FP32
          {"kernels.dropout", "true"},   // default 0.1
          {"batch.global_batch", "1536"}},
         {},
         {},
         {}});
  constexpr std::int64_t h = 12288;
  EXPECT_EQ(count_parameters(loaded("megatron/gpt3-175b.sh").model),
            96 * (12 * h * h + 13 * h) + (51200 + 2048) * h + 2 * h);
}

TEST(ImportMegatron, OneNodeCannotHold128Ranks) {
  const std::string message = refusal("megatron/gpt3-one-node.sh", 0, ExitCode::broken_rule);
  EXPECT_TRUE(contains(message, "8 x 16 x 1 = 128 ranks, but the launcher starts 8 ranks")) << message;
  EXPECT_TRUE(contains(message, "--nnodes (line 9)")) << message;
  EXPECT_TRUE(contains(message, "gpt3-one-node.sh:24")) << message;
  EXPECT_EQ(refusal("megatron/gpt3-one-node.sh", 256, ExitCode::broken_rule), "accepted");  // --devices decides
}

TEST(ImportMegatron, MixtureOfExpertsWithSequenceParallelAtOne) {
  check({"megatron/mixtral.sh",
         0,
         {{"model.moe.experts", "8"},
          {"model.moe.experts_per_token", "2"},
          {"model.kv_heads", "8"},
          {"parallel.expert", "8"},
          {"parallel.pipeline", "4"},
          {"parallel.data", "8"},  // 32 / 4
          {"parallel.sequence", "false"},
          {"parallel.zero", "1"},
          {"kernels.dropout", "false"}},
         {},
         {"--sequence-parallel (line 32) does nothing", "`if` or `case`"},
         {}});
  // Mixtral 8x7B of Hugging Face has 46,702,792,704 weights.
  EXPECT_EQ(count_parameters(loaded("megatron/mixtral.sh").model), 46702792704);
}

TEST(ImportMegatron, ShellVariablesAndEightBits) {
  check({"megatron/llama3-8b-fp8.sh",
         0,
         {{"model.layers", "32"},
          {"model.vocabulary", "128384"},  // NullTokenizer adds one: 128257 up to a multiple of 128
          {"precision.compute", "fp8_e4m3"},
          {"gradients.stored", "bf16"},
          {"kernels.loss", "fused"},
          {"parallel.data", "8"},
          {"batch.global_batch", "128"}},
         {"--fp8-param-gather"},
         {"--sequence-parallel (line 43) does nothing", "`if` or `case`"},
         {}});
}

TEST(ImportMegatron, BatchJobWithSlotsForTheTables) {
  check({"megatron/bloom.slurm",
         0,
         {{"parallel.data", "8"},          // 48 x 8 / (12 x 4)
          {"model.vocabulary", "250880"},  // --pad-vocab-size-to
          {"model.position", "alibi"},
          {"model.embedding_norm", "true"},
          {"parallel.layers_per_stage", "[5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 5]"},  // (70 + 2) / 12 = 6 slots
          {"activations.recompute", "full"},
          {"activations.recompute_layers", "[6]"}},
         {},
         {},
         {}});
  EXPECT_EQ(count_parameters(loaded("megatron/bloom.slurm").model), 176247271424);  // BLOOM's published count
}

TEST(ImportMegatron, YamlOfContinuousIntegration) {
  check({"megatron/ci.yaml",
         16,
         {{"model.vocabulary", "8192"},  // 8191 + 1, a multiple of 128 x 2
          {"parallel.chunks", "6"},      // 12 layers / 2 stages / 1 layer
          {"parallel.schedule", "interleaved"},
          {"parallel.sequence", "true"},
          {"parallel.data", "4"},
          {"batch.micro_batch", "4"}},
         {},
         {},
         {}});
}

TEST(ImportMegatron, OneLongLine) {
  check({"megatron/one-line.txt",
         0,
         {{"model.qkv_bias", "true"},
          {"model.vocabulary", "152064"},  // 151643 up to a multiple of 128 x 4
          {"parallel.ring", "2"},
          {"documents.placement", "zigzag"},
          {"parallel.data", "2"},
          {"optimizer.learning_rate", "3e-05"},
          {"activations.recompute_layers", "[28]"}},
         {},
         {},
         {}});
}

TEST(ImportMegatron, LatentAttentionAndDenseFirstLayer) {
  check({"megatron/deepseek-v2-lite.sh",
         0,
         {{"model.mla.kv_lora_rank", "512"},
          {"model.moe.dense_first_layers", "1"},
          {"model.moe.shared_ffn_hidden", "2816"},
          {"parallel.layers_per_stage", "[13, 14]"},
          {"parallel.data", "8"},  // $((16 / 2)) x 2 / 2
          {"activations.recompute", "selective"}},
         {"--mtp-num-layers"},
         {},
         {}});
  EXPECT_EQ(count_parameters(loaded("megatron/deepseek-v2-lite.sh").model), 15706484224);  // DeepSeek-V2-Lite
}

TEST(ImportDeepSpeed, EverythingAuto) {
  check({"deepspeed/zero3-auto.json",
         4,
         {{"parallel.zero", "3"},
          {"parallel.data", "4"},
          {"precision.compute", "bf16"},
          {"batch.global_batch", "4"},
          {"gradients.bucket", "absent"},
          {"model", "absent"}},
         {},
         {},
         {"model", "batch.sequence_length"}});
}

TEST(ImportDeepSpeed, OffloadIndentedByTabsWithoutPrefixes) {
  check({"deepspeed/zero3-offload-tabs.json",
         0,
         {{"parallel.zero", "3"},
          {"parallel.data", "8"},  // 32 / (1 x 4)
          {"batch.global_batch", "32"}},
         {"zero_optimization.offload_optimizer.device", "zero_optimization.offload_param.device"},
         {"max_live_parameters (line 10) lacks the prefix", "max_reuse_distance (line 11)",
          "gather_16bit_weights_on_model_save (line 12)"},
         {"model", "batch.sequence_length"}});
}

TEST(ImportDeepSpeed, StageZero) {
  check({"deepspeed/bloom-stage0.json",
         8,
         {{"parallel.zero", "0"}, {"precision.compute", "bf16"}, {"optimizer.clip_gradient_norm", "1"}},
         {},
         {},
         {"model", "batch.sequence_length"}});
}

TEST(ImportDeepSpeed, ShardsInsideGroups) {
  check({"deepspeed/mics.json",
         0,
         {{"parallel.data", "8"},  // 64 / (2 x 4)
          {"parallel.zero_group", "4"},
          {"gradients.bucket", "400 MB"},  // 2e8 elements of 2 bytes
          {"optimizer.beta2", "0.98"},
          {"optimizer.schedule", "linear"},
          {"optimizer.warmup_steps", "100"}},
         {},
         {},
         {"model", "batch.sequence_length"}});
}

TEST(ImportDeepSpeed, HalfAuto) {
  check({"deepspeed/gptj.json",
         2,
         {{"batch.micro_batch", "4"},
          {"batch.global_batch", "16"},
          {"optimizer.learning_rate", "absent"},
          {"optimizer.clip_gradient_norm", "0"}},  // DeepSpeed does not clip unasked
         {},
         {},
         {"model", "batch.sequence_length"}});
}

TEST(ImportDeepSpeed, SequenceParallelAndAnUnknownKey) {
  check({"deepspeed/ulysses.json",
         8,
         {{"parallel.ulysses", "4"},
          {"parallel.data", "2"},
          {"gradients.stored", "fp32"},
          {"gradients.wire", "bf16"},
          {"parallel.zero", "2"}},
         {"zero_optimization.turbo_mode"},
         {},
         {"model", "batch.sequence_length"}});
}

TEST(ImportDeepSpeed, TheThreeBatchFieldsMustAgree) {
  const std::string message = refusal("deepspeed/contradiction.json", 8, ExitCode::broken_rule);
  EXPECT_TRUE(contains(message, "train_batch_size (line 2) = 64")) << message;
  EXPECT_TRUE(contains(message, "4 x 1 x 8 = 32")) << message;
  EXPECT_EQ(refusal("deepspeed/contradiction.json", 16, ExitCode::broken_rule), "accepted");
}

TEST(ImportTorchTitan, EightBillionOn64) {
  check({"torchtitan/llama3-8b.toml",
         64,
         {{"model", "llama3.1-8b"},
          {"parallel.data", "64"},
          {"parallel.zero", "3"},
          {"batch.global_batch", "64"},
          {"activations.recompute", "elementwise"},
          {"kernels.loss", "fp32_softmax"}},
         {},
         {},
         {}});
}

TEST(ImportTorchTitan, OldNamesOfKeys) {
  check({"torchtitan/llama3-70b.toml",
         0,
         {{"model", "llama3.1-70b"},
          {"batch.micro_batch", "8"},
          {"parallel.tensor", "8"},
          {"parallel.data", "8"},
          {"parallel.sequence", "true"},
          {"activations.recompute", "full"},
          {"activations.recompute_layers", "[80]"}},
         {},
         {},
         {}});
}

TEST(ImportTorchTitan, EightBitsAndInterleavedStages) {
  check({"torchtitan/llama3-405b.toml",
         512,
         {{"parallel.data", "32"},  // 512 / (8 x 2)
          {"parallel.schedule", "interleaved"},
          {"parallel.chunks", "2"},
          {"batch.micro_batch", "1"},    // of the pipeline
          {"batch.global_batch", "64"},  // 2 x 32
          {"parallel.zero", "2"},        // with a pipeline, parameters stay gathered
          {"precision.compute", "fp8_e4m3"},
          {"kernels.loss", "fused"}},
         {},
         {},
         {}});
}

TEST(ImportTorchTitan, ScheduleWithoutPipeline) {
  check({"torchtitan/deepseek-16b.toml",
         8,
         {{"parallel.expert", "8"},
          {"parallel.data", "8"},
          {"activations.recompute", "none"},
          {"parallel.schedule", "absent"}},
         {},
         {"Interleaved1F1B does nothing"},
         {}});
}

TEST(ImportTorchTitan, DebugModelWithAnUnknownKey) {
  check(
      {"torchtitan/debug.toml",
       0,
       {{"model.layers", "6"}, {"parallel.data", "2"}, {"parallel.zero", "2"}, {"activations.recompute_layers", "[3]"}},
       {"training.colour_of_the_logs"},
       {},
       {}});
}

TEST(ImportNanotron, TinyLlamaIsNotTiny) {
  check({"nanotron/tiny-llama.yaml",
         0,
         {{"parallel.data", "4"},
          {"parallel.tensor", "2"},
          {"parallel.sequence", "true"},
          {"batch.global_batch", "12"},
          {"gradients.stored", "fp32"},
          {"gradients.bucket", "25 MiB"},
          {"train.steps", "15"}},
         {},
         {},
         {}});
  constexpr std::int64_t h = 2048;  // the table is tied; 2 of 16 heads hold keys
  EXPECT_EQ(count_parameters(loaded("nanotron/tiny-llama.yaml").model),
            28 * (2 * h * h + 2 * h * 256 + 3 * h * 11008 + 2 * h) + 128256 * h + h);
}

TEST(ImportNanotron, QwenWithBiases) {
  check({"nanotron/qwen.yaml",
         0,
         {{"model.qkv_bias", "true"}, {"parallel.zero", "1"}, {"batch.global_batch", "16"}},
         {},
         {},
         {}});
}

TEST(ImportNanotron, ExpertsWindowAndAnUnknownKey) {
  check({"nanotron/qwen-moe.yaml",
         0,
         {{"model.moe.experts", "8"},
          {"model.moe.experts_per_token", "1"},
          {"model.moe.shared_experts", "1"},
          {"model.sliding_window", "20"},
          {"parallel.expert", "2"},
          {"gradients.stored", "bf16"}},
         {"model.model_config.z_loss_enabled"},
         {},
         {}});
}

TEST(ImportNanotron, RowsBeyondThePositions) {
  check({"nanotron/doremi.yaml",
         0,
         {{"model.vocabulary", "49152"},
          {"batch.global_batch", "512"},
          {"parallel.sequence", "false"},
          {"activations.recompute", "full"}},
         {},
         {"1024, beyond"},
         {}});
}

TEST(ImportNanotron, PipelineOfAllForwardThenAllBackward) {
  check({"nanotron/llama3-8b.yaml",
         8,
         {{"parallel.schedule", "gpipe"},
          {"parallel.zero", "0"},
          {"gradients.stored", "fp32"},
          {"batch.global_batch", "8"}},
         {},
         {},
         {}});
  EXPECT_TRUE(
      contains(refusal("nanotron/llama3-8b.yaml", 16, ExitCode::broken_rule), "= 8 ranks, but --devices gives 16"));
}

TEST(ImportAccelerate, Template) {
  check({"accelerate/template.yaml",
         0,
         {{"parallel.data", "2"},
          {"parallel.zero", "3"},
          {"precision.compute", "bf16"},
          {"activations.recompute", "none"}},
         {},
         {},
         {"model", "batch.sequence_length"}});
}

TEST(ImportAccelerate, SecondVersion) {
  check({"accelerate/fsdp2.yaml",
         0,
         {{"parallel.data", "8"}, {"parallel.zero", "3"}, {"activations.recompute", "full"}},
         {},
         {},
         {"model", "batch.sequence_length"}});
}

TEST(ImportAccelerate, StrategyAsANumberAndFlagsAsText) {
  check({"accelerate/integers.yaml",
         0,
         {{"parallel.zero", "3"}, {"precision.compute", "fp32"}},
         {"fsdp_config.fsdp_offload_params", "fsdp_config.fsdp_flavour"},
         {"fsdp_auto_wrap_policy is not set"},
         {"model", "batch.sequence_length"}});
}

TEST(ImportAccelerate, ShardsInsideTheNode) {
  check({"accelerate/hybrid.yaml",
         0,
         {{"parallel.zero", "3"}, {"parallel.zero_group", "8"}, {"parallel.data", "32"}},
         {},
         {},
         {"model", "batch.sequence_length"}});
}

TEST(ImportAccelerate, DeepSpeedInside) {
  check({"accelerate/deepspeed.yaml",
         0,
         {{"parallel.zero", "2"}, {"batch.global_batch", "16"}, {"optimizer.clip_gradient_norm", "1"}},
         {"deepspeed_config.offload_param_device"},
         {},
         {"model", "batch.sequence_length"}});
}

TEST(ImportAccelerate, ProcessesMustSpreadOverMachines) {
  const std::string message = refusal("accelerate/uneven.yaml", 0, ExitCode::broken_rule);
  EXPECT_TRUE(contains(message, "uneven.yaml:3")) << message;
  EXPECT_TRUE(contains(message, "num_machines (line 2)")) << message;
}

TEST(ImportHuggingFace, Families) {
  const std::vector<std::string> none;
  check({"huggingface/phi-2.json",
         0,
         {{"batch.sequence_length", "2048"}, {"model.head_bias", "true"}},
         none,
         none,
         none});
  check({"huggingface/mistral-tabs.json",
         2,
         {{"parallel.data", "2"}, {"batch.global_batch", "2"}},
         {"quantization_config"},
         none,
         none});
  check({"huggingface/gemma2.json", 0, {{"model.sliding_window_every", "2"}}, none, none, none});
  check({"huggingface/qwen3-moe.json", 0, {{"model.moe.expert_ffn_hidden", "768"}}, none, none, none});
  check({"huggingface/gpt2.json", 0, {{"batch.sequence_length", "1024"}}, none, none, none});
  check({"huggingface/deepseek-v3-small.json",
         0,
         {{"model.mla.q_lora_rank", "384"}},
         {"num_nextn_predict_layers"},
         none,
         none});
  EXPECT_EQ(count_parameters(loaded("huggingface/phi-2.json").model), 2779683840);  // the published count
  EXPECT_TRUE(
      contains(refusal("huggingface/wrong-heads.json", 0, ExitCode::configuration), "32 heads are not divisible by 7"));
}

TEST(ImportMegatron, ContradictionsNameTheArgumentsAndTheNumbers) {
  const std::string base =
      "torchrun --nproc_per_node 8 x.py --num-layers 12 --hidden-size 64 --num-attention-heads 4 --vocab-size 128 "
      "--seq-length 32 --max-position-embeddings 32 --micro-batch-size 2 --global-batch-size 32\n";
  struct Case {
    std::string more, message;
  };
  for (const Case& one : std::vector<Case>{
           {"--bf16 --fp16", "--bf16 and --fp16 exclude each other"},
           {"--rampup-batch-size 16 8 1000",
            "the increment of 8 rows is no multiple of micro batch x data = 2 x 8 = 16"},
           {"--seq-length 64", "--seq-length (line 2) is 64, but --max-position-embeddings (line 1) has only 32 rows"},
           {"--global-batch-size 40",
            "40, no multiple of --micro-batch-size (line 1) x ranks = 2 x 8 = 16; nearest: 32 or 48"},
           {"--pipeline-model-parallel-size 8",
            "12 layers do not divide into 8 stages of the pipeline; legal: 8 or 16"},
           {"--tensor-model-parallel-size 3", "3 x 1 x 1 = 3 ranks, but the launcher starts 8 ranks"},
           {"--recompute-granularity full", "needs --recompute-method uniform or block"},
           {"--grad-reduce-in-bf16 --accumulate-allreduce-grads-in-fp32", "exclude each other"},
           {"--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 5",
            "12 layers are not 2 stages x"}}) {
    try {
      import_plan(base + "args=(" + one.more + ")", "train.sh", {});
      ADD_FAILURE() << one.more << " was accepted";
    } catch (const RuleError& error) {
      EXPECT_TRUE(contains(to_string(error.diagnostics().front()), one.message)) << error.what();
      EXPECT_EQ(error.diagnostics().front().file, "train.sh");
      EXPECT_GT(error.diagnostics().front().line, 0) << error.what();
    }
  }
}

TEST(Import, WhatLooksLikeNothingIsRefused) {
  const ImportOptions options;
  for (const char* text : {"", "hello", "{\"a\": 1}", "a: 1", "[x]\ny = 2\n", "reckon: 1\nmodel: gpt2\n"}) {
    EXPECT_THROW(import_plan(text, "file", options), ConfigError) << text;
  }
}

}  // namespace
}  // namespace reckon
