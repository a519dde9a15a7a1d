#include "plan/hugging_face_config.h"

#include <gtest/gtest.h>

#include <string>

#include "plan/errors.h"
#include "plan/parameters.h"
#include "plan/yaml_document.h"
#include "plan/yaml_reader.h"

namespace reckon {
namespace {

const YamlValue& golden_models() {
  static const std::string file = std::string(RECKON_SOURCE_DIR) + "/tests/golden/models.json";
  static const YamlValue document = parse_yaml(read_text_file(file), file);
  return document;
}

ModelSpec golden_model(const std::string& name) {
  return read_hugging_face_config(*golden_models().find(name)->find("config"), name);
}

ModelSpec parse(const std::string& json) {
  return read_hugging_face_config(parse_yaml(json, "config.json"), "config.json");
}

std::string refusal(const std::string& json) {
  try {
    parse(json);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

const std::string kSmallLlama =
    R"("model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, )"
    R"("vocab_size": 100, "intermediate_size": 96)";

TEST(HuggingFaceConfig, CountsOfAllPublishedModelsAreExact) {
  ASSERT_EQ(golden_models().entries.size(), 53u);
  for (const YamlEntry& entry : golden_models().entries) {
    const ModelSpec model = golden_model(entry.key);
    std::int64_t parameters = 0, active = 0;
    from_yaml(*entry.value.find("parameters"), parameters);
    EXPECT_EQ(count_parameters(model), parameters) << entry.key;
    const YamlValue* published = entry.value.find("active_parameters");
    active = parameters;
    if (published != nullptr) from_yaml(*published, active);
    EXPECT_EQ(count_active_parameters(model), active) << entry.key;
  }
}

TEST(HuggingFaceConfig, EveryFieldOfThePublishedModelsIsUnderstoodButTheExtraPredictionLayer) {
  for (const YamlEntry& entry : golden_models().entries) {
    const std::vector<std::string> expected =
        entry.key == "DeepSeek-V3" ? std::vector<std::string>{"num_nextn_predict_layers"} : std::vector<std::string>{};
    EXPECT_EQ(golden_model(entry.key).unread_fields, expected) << entry.key;
  }
}

TEST(HuggingFaceConfig, OldLlamaFilesGetTheirDefaults) {
  const ModelSpec model = parse("{" + kSmallLlama + "}");
  EXPECT_EQ(model.kv_heads, 4);
  EXPECT_EQ(model.head_dim, 16);
  EXPECT_EQ(model.rope_theta, 10000.0);
  EXPECT_FALSE(model.tied_head);
  EXPECT_FALSE(model.qkv_bias);
  EXPECT_EQ(model.sliding_window, 0);
}

TEST(HuggingFaceConfig, NamesTheFieldsThatItDoesNotUnderstand) {
  const ModelSpec model =
      parse("{" + kSmallLlama + R"(, "clip_qkv": 8.0, "mlp_mirror": false, "torch_dtype": "bfloat16"})");
  EXPECT_EQ(model.unread_fields, (std::vector<std::string>{"clip_qkv"}));  // a false field asks for nothing
}

TEST(HuggingFaceConfig, SlidingWindows) {
  EXPECT_EQ(golden_model("Mistral-7B-v0.1").sliding_window, 4096);
  EXPECT_EQ(golden_model("Qwen2.5-7B").sliding_window, 0);  // set but switched off
  EXPECT_EQ(golden_model("gemma-2-9b").sliding_window_every, 2);
  EXPECT_EQ(golden_model("gpt-oss-20b").sliding_window_every, 2);
  EXPECT_EQ(golden_model("gpt-oss-20b").sliding_window, 128);
  const std::string window = kSmallLlama + R"(, "sliding_window": 8, "layer_types": )";
  EXPECT_EQ(parse("{" + window + R"(["full_attention", "full_attention"]})").sliding_window, 0);
  EXPECT_EQ(parse("{" + window + R"(["sliding_attention", "sliding_attention"]})").sliding_window_every, 1);
  EXPECT_NE(refusal("{" + window + R"(["full_attention", "sliding_attention"]})").find("cannot be expressed"),
            std::string::npos);
}

TEST(HuggingFaceConfig, FamiliesHaveTheirBlocks) {
  EXPECT_EQ(golden_model("falcon-7b").kv_heads, 1);
  EXPECT_EQ(golden_model("falcon-7b").block_norms, 1);
  EXPECT_EQ(golden_model("falcon-40b").kv_heads, 8);
  EXPECT_EQ(golden_model("falcon-40b").block_norms, 2);
  EXPECT_TRUE(golden_model("gpt-neox-20b").parallel_block);
  EXPECT_EQ(golden_model("gpt-neox-20b").rope_fraction, 0.25);
  EXPECT_EQ(golden_model("bloom").position, Position::alibi);
  EXPECT_EQ(golden_model("opt-125m").position_rows, 2050);
  EXPECT_EQ(golden_model("opt-125m").position_offset, 2);
  EXPECT_EQ(golden_model("opt-125m").activation, Activation::relu);
  EXPECT_EQ(golden_model("DeepSeek-V3").moe.dense_first_layers, 3);
  EXPECT_EQ(golden_model("DeepSeek-V2-Lite").mla.q_lora_rank, 0);
  EXPECT_EQ(golden_model("DeepSeek-V2").moe.shared_ffn_hidden, 2 * 1536);
  EXPECT_EQ(golden_model("Llama-3.2-1B").rope_scaling, "llama3");
  EXPECT_EQ(golden_model("Llama-3.2-1B").rope_scaling_factor, 32.0);
  EXPECT_EQ(golden_model("Meta-Llama-3.1-8B").rope_scaling_factor, 8.0);
  EXPECT_EQ(golden_model("gemma-2-2b").attention_softcap, 50.0);
  EXPECT_FALSE(golden_model("OLMo-2-0425-1B").pre_norm);
}

TEST(HuggingFaceConfig, MptIsReadByItsOwnNames) {
  const ModelSpec model = parse(
      R"({"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32, "expansion_ratio": 4, "vocab_size": 50432,
          "max_seq_len": 2048, "no_bias": true, "learned_pos_emb": true, "attn_config": {"alibi": true, "qk_ln": false}})");
  EXPECT_EQ(model.position, Position::alibi);
  // table, 32 layers of 12 h^2 and two norm weights, final norm weight; no biases anywhere
  EXPECT_EQ(count_parameters(model), 50432LL * 4096 + 32LL * (12LL * 4096 * 4096 + 2 * 4096) + 4096);
}

TEST(HuggingFaceConfig, RefusesWithASentence) {
  EXPECT_NE(refusal(R"({"model_type": "mamba"})").find("'mamba' is not one of llama, mistral"), std::string::npos);
  EXPECT_NE(refusal(R"({"model_type": "llama", "hidden_size": 64})").find("'num_hidden_layers' is missing"),
            std::string::npos);
  EXPECT_NE(refusal("{" + kSmallLlama + R"(, "num_key_value_heads": 3})").find("not divisible by 3 kv_heads"),
            std::string::npos);
  EXPECT_NE(refusal("{" + kSmallLlama + R"(, "hidden_act": "mish"})").find("activation 'mish'"), std::string::npos);
  EXPECT_NE(refusal(R"({"model_type": "llama", "hidden_size": 99999999999})").find("no model has more"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"model_type": "llama", "hidden_size": "wide"})").find("config.json:1:"), std::string::npos);
  EXPECT_NE(refusal(R"({"model_type": "opt", "hidden_size": 512, "num_hidden_layers": 2, "num_attention_heads": 8,
                        "vocab_size": 100, "ffn_dim": 64, "do_layer_norm_before": false})")
                .find("do_layer_norm_before"),
            std::string::npos);
}

}  // namespace
}  // namespace reckon
