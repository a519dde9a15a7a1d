#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "plan/load_plan.h"
#include "plan/model_yaml.h"
#include "plan/parameters.h"
#include "plan/spec_yaml.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;

const ConfigPaths kShipped{fs::path(RECKON_SOURCE_DIR) / "configs", {}};

ModelSpec parse(const std::string& yaml) {
  return read_model(parse_yaml(yaml, "m.yaml"), "m.yaml");
}

std::string refusal(const std::string& yaml) {
  try {
    parse(yaml);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

const std::string kSmall = "layers: 2\nhidden: 64\nffn_hidden: 96\nheads: 4\nvocabulary: 100\n";

TEST(LoadModel, ShippedModelsLoadAndAreNamedAfterTheirFiles) {
  const std::vector<std::string> names = known_models(kShipped);
  EXPECT_GE(names.size(), 30u);
  for (const std::string& name : names) {
    const ModelSpec model = load_model(name, kShipped);
    EXPECT_EQ(model.name, name);
    EXPECT_FALSE(model.source.empty()) << name;
    EXPECT_GT(count_parameters(model), 0) << name;
    EXPECT_LE(count_active_parameters(model), count_parameters(model)) << name;
  }
}

TEST(LoadModel, ShippedModelsEqualTheirPublishedConfigs) {
  const std::map<std::string, std::string> published_of = {{"bloom-176b", "bloom"},
                                                           {"deepseek-v2", "DeepSeek-V2"},
                                                           {"deepseek-v2-lite", "DeepSeek-V2-Lite"},
                                                           {"deepseek-v3", "DeepSeek-V3"},
                                                           {"falcon-40b", "falcon-40b"},
                                                           {"falcon-7b", "falcon-7b"},
                                                           {"gemma2-27b", "gemma-2-27b"},
                                                           {"gemma2-2b", "gemma-2-2b"},
                                                           {"gemma2-9b", "gemma-2-9b"},
                                                           {"gpt-neox-20b", "gpt-neox-20b"},
                                                           {"gpt-oss-120b", "gpt-oss-120b"},
                                                           {"gpt-oss-20b", "gpt-oss-20b"},
                                                           {"gpt2", "gpt2"},
                                                           {"gpt2-large", "gpt2-large"},
                                                           {"gpt2-medium", "gpt2-medium"},
                                                           {"gpt2-xl", "gpt2-xl"},
                                                           {"gpt3-175b", "gpt3-175b-megatron"},
                                                           {"llama2-13b", "Llama-2-13b"},
                                                           {"llama2-70b", "Llama-2-70b"},
                                                           {"llama2-7b", "Llama-2-7b"},
                                                           {"llama3-70b", "Meta-Llama-3-70B"},
                                                           {"llama3-8b", "Meta-Llama-3-8B"},
                                                           {"llama3.1-405b", "Meta-Llama-3.1-405B"},
                                                           {"llama3.1-70b", "Meta-Llama-3.1-70B"},
                                                           {"llama3.1-8b", "Meta-Llama-3.1-8B"},
                                                           {"llama3.2-1b", "Llama-3.2-1B"},
                                                           {"llama3.2-3b", "Llama-3.2-3B"},
                                                           {"mistral-7b", "Mistral-7B-v0.1"},
                                                           {"mixtral-8x22b", "Mixtral-8x22B-v0.1"},
                                                           {"mixtral-8x7b", "Mixtral-8x7B-v0.1"},
                                                           {"olmo2-13b", "OLMo-2-1124-13B"},
                                                           {"olmo2-1b", "OLMo-2-0425-1B"},
                                                           {"olmo2-32b", "OLMo-2-0325-32B"},
                                                           {"olmo2-7b", "OLMo-2-1124-7B"},
                                                           {"opt-125m", "opt-125m"},
                                                           {"opt-175b", "opt-175b"},
                                                           {"phi3-mini", "Phi-3-mini-4k-instruct"},
                                                           {"qwen1.5-72b", "Qwen1.5-72B"},
                                                           {"qwen2-72b", "Qwen2-72B"},
                                                           {"qwen2-7b", "Qwen2-7B"},
                                                           {"qwen2.5-0.5b", "Qwen2.5-0.5B"},
                                                           {"qwen2.5-1.5b", "Qwen2.5-1.5B"},
                                                           {"qwen2.5-14b", "Qwen2.5-14B"},
                                                           {"qwen2.5-32b", "Qwen2.5-32B"},
                                                           {"qwen2.5-3b", "Qwen2.5-3B"},
                                                           {"qwen2.5-72b", "Qwen2.5-72B"},
                                                           {"qwen2.5-7b", "Qwen2.5-7B"},
                                                           {"qwen3-0.6b", "Qwen3-0.6B"},
                                                           {"qwen3-1.7b", "Qwen3-1.7B"},
                                                           {"qwen3-235b-a22b", "Qwen3-235B-A22B"},
                                                           {"qwen3-30b-a3b", "Qwen3-30B-A3B"},
                                                           {"qwen3-32b", "Qwen3-32B"},
                                                           {"qwen3-8b", "Qwen3-8B"}};
  const std::string file = std::string(RECKON_SOURCE_DIR) + "/tests/golden/models.json";
  const YamlValue golden = parse_yaml(read_text_file(file), file);
  for (const auto& [name, published] : published_of) {
    ModelSpec shipped = load_model(name, kShipped);
    ModelSpec original = read_model(*golden.find(published)->find("config"), published);
    shipped.source.clear(), shipped.aliases.clear(), shipped.name.clear();
    EXPECT_EQ(write_yaml(model_yaml(shipped)), write_yaml(model_yaml(original))) << name;
  }
}

TEST(LoadModel, CountsOfModelsKnownFromMeasuredRuns) {
  const auto count = [](const char* name) { return count_parameters(load_model(name, kShipped)); };
  // weight counts printed by the llm-foundry benchmark tables (learned positions for 2048 tokens, tied table)
  EXPECT_EQ(count("mpt-1b"), 1315950592);
  EXPECT_EQ(count("mpt-7b"), 6658859008);
  EXPECT_EQ(count("mpt-13b"), 12853954560);
  EXPECT_EQ(count("mpt-70b"), 64862437376);
  EXPECT_GE(count("llama-10m"), 10000000);
  EXPECT_LT(count("llama-10m"), 12000000);
}

TEST(LoadModel, AliasesAreOtherNames) {
  EXPECT_EQ(load_model("gpt3", kShipped).name, "gpt3-175b");
  EXPECT_EQ(load_model("DeepSeek V3 671B", kShipped).name, "deepseek-v3");
}

TEST(LoadModel, UnknownNameSuggestsTheNearest) {
  try {
    load_model("llama2-13", kShipped);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'llama2-13b'?"), std::string::npos) << error.what();
  }
}

TEST(LoadModel, ReadsAConfigJsonByPathOrFolder) {
  const fs::path folder = fs::path(testing::TempDir()) / "reckon-load-model" / "my-model";
  fs::create_directories(folder);
  std::ofstream(folder / "config.json") << R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "vocab_size": 100, "intermediate_size": 96, "strange_field": 3})";
  for (const fs::path& path : {folder, folder / "config.json"}) {
    const ModelSpec model = load_model(path.string(), kShipped);
    EXPECT_EQ(model.name, "my-model");
    EXPECT_EQ(count_parameters(model), count_parameters(parse(kSmall)));
    EXPECT_EQ(model.unread_fields, (std::vector<std::string>{"strange_field"}));
  }
  std::ofstream(folder / "other.json") << R"({"hidden_size": 64})";
  EXPECT_THROW(load_model((folder / "other.json").string(), kShipped), ConfigError);
  EXPECT_THROW(load_model((folder / "missing.yaml").string(), kShipped), ConfigError);
  fs::remove_all(folder.parent_path());
}

TEST(LoadModel, WritingAndReadingBackGivesTheSameModel) {
  for (const std::string& name : known_models(kShipped)) {
    const ModelSpec model = load_model(name, kShipped);
    const std::string text = write_yaml(model_yaml(model));
    EXPECT_EQ(write_yaml(model_yaml(parse(text))), text) << name;
    EXPECT_EQ(count_parameters(parse(text)), count_parameters(model)) << name;
  }
}

TEST(LoadModel, FillsWhatFollowsFromOtherKeys) {
  const ModelSpec model = parse(kSmall + "moe: {experts: 8, experts_per_token: 2, shared_experts: 2}\n");
  EXPECT_EQ(model.kv_heads, 4);
  EXPECT_EQ(model.head_dim, 16);
  EXPECT_EQ(model.moe.expert_ffn_hidden, 96);
  EXPECT_EQ(model.moe.shared_ffn_hidden, 192);
}

TEST(LoadModel, EveryKeyIsDocumented) {
  const std::string text = read_text_file(kShipped.configs / "models" / "README.md");
  for (const std::string& key : model_keys())
    EXPECT_NE(text.find("| `" + key + "` |"), std::string::npos) << key << " is not in configs/models/README.md";
}

TEST(LoadModel, RefusesWithPlaceAndSentence) {
  EXPECT_EQ(refusal(kSmall), "accepted");
  EXPECT_NE(refusal("hidden: 64\n").find("'layers' is missing"), std::string::npos);
  EXPECT_NE(refusal(kSmall + "hiden: 3\n").find("m.yaml:6:1: unknown key 'hiden'; did you mean 'hidden'?"),
            std::string::npos);
  EXPECT_NE(
      refusal("layers: 0\nhidden: 64\nffn_hidden: 96\nheads: 4\nvocabulary: 100\n").find("m.yaml:1:9: layers is 0"),
      std::string::npos);
  EXPECT_NE(refusal("layers: -3\nhidden: 64\nffn_hidden: 96\nheads: 4\nvocabulary: 100\n").find("layers is -3"),
            std::string::npos);
  EXPECT_NE(refusal("layers: 2\nhidden: 100\nffn_hidden: 96\nheads: 3\nvocabulary: 100\n")
                .find("hidden 100 is not divisible by 3 heads"),
            std::string::npos);
  EXPECT_NE(refusal("layers: 2\nhidden: 64\nffn_hidden: 96\nheads: 4\nvocabulary: 3000000000\n").find("vocabulary is"),
            std::string::npos);
  EXPECT_NE(refusal("layers: 2\nhidden: 64\nheads: 4\nvocabulary: 100\n").find("ffn_hidden is 0"), std::string::npos);
  EXPECT_NE(refusal(kSmall + "kv_heads: 3\n").find("not divisible by 3 kv_heads"), std::string::npos);
  EXPECT_NE(refusal(kSmall + "norm: layernorm\n").find("did you mean 'layer_norm'?"), std::string::npos);
  EXPECT_NE(refusal(kSmall + "norm_bias: true\n").find("norm_bias needs norm: layer_norm"), std::string::npos);
  EXPECT_NE(refusal(kSmall + "moe: {experts: 4, experts_per_token: 5}\n").find("moe.experts_per_token is 5"),
            std::string::npos);
  EXPECT_NE(refusal(kSmall + "moe: {expert: 4}\n").find("unknown key 'expert'"), std::string::npos);
  EXPECT_NE(refusal("layers: 9000\nhidden: 16000000\nffn_hidden: 16000000\nheads: 4\nvocabulary: 100\n")
                .find("would have about"),
            std::string::npos);
  EXPECT_NE(refusal("- 1\n").find("are needed"), std::string::npos);
}

TEST(LoadModel, SharedWidthWithoutSharedExpertsIsRefused) {
  try {
    parse(kSmall + "moe: {experts: 8, experts_per_token: 2, shared_ffn_hidden: 96}\n");
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("shared_experts is 0"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace reckon
