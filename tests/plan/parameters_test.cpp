#include "plan/parameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace reckon {
namespace {

ModelSpec small_llama() {
  ModelSpec model;
  model.layers = 3;
  model.hidden = 8;
  model.ffn_hidden = 20;
  model.heads = 4;
  model.kv_heads = 2;
  model.head_dim = 2;
  model.vocabulary = 11;
  return model;
}

std::vector<std::string> names(const std::vector<Parameter>& list) {
  std::vector<std::string> result;
  for (const Parameter& parameter : list) result.push_back(parameter.name);
  return result;
}

TEST(Parameters, LlamaLayerHasHuggingFaceNames) {
  EXPECT_EQ(
      names(layer_parameters(small_llama(), 2)),
      (std::vector<std::string>{"model.layers.2.input_layernorm.weight", "model.layers.2.self_attn.q_proj.weight",
                                "model.layers.2.self_attn.k_proj.weight", "model.layers.2.self_attn.v_proj.weight",
                                "model.layers.2.self_attn.o_proj.weight",
                                "model.layers.2.post_attention_layernorm.weight", "model.layers.2.mlp.gate_proj.weight",
                                "model.layers.2.mlp.up_proj.weight", "model.layers.2.mlp.down_proj.weight"}));
  EXPECT_EQ(names(embedding_parameters(small_llama())), (std::vector<std::string>{"model.embed_tokens.weight"}));
  EXPECT_EQ(names(head_parameters(small_llama())), (std::vector<std::string>{"model.norm.weight", "lm_head.weight"}));
}

TEST(Parameters, CountOfASmallLlamaByHand) {
  const std::int64_t attention = 8 * 8 + 2 * 4 * 8 + 8 * 8, ffn = 3 * 20 * 8, norms = 2 * 8;
  EXPECT_EQ(count_parameters(small_llama()), 2 * 11 * 8 + 8 + 3 * (attention + ffn + norms));
}

TEST(Parameters, TiedTableCountsOnce) {
  ModelSpec tied = small_llama();
  tied.tied_head = true;
  EXPECT_EQ(count_parameters(tied), count_parameters(small_llama()) - 11 * 8);
}

TEST(Parameters, BiasOfARowParallelProductIsReplicated) {
  ModelSpec model = small_llama();
  model.gated_ffn = false;
  model.norm = Norm::layer_norm;
  model.norm_bias = model.qkv_bias = model.projection_bias = model.ffn_bias = true;
  for (const Parameter& parameter : layer_parameters(model, 0)) {
    if (parameter.name == "model.layers.0.mlp.down_proj.bias") {
      EXPECT_EQ(parameter.split, Split::replicated);
    }
    if (parameter.name == "model.layers.0.mlp.up_proj.bias") {
      EXPECT_EQ(parameter.split, Split::rows);
    }
    EXPECT_EQ(parameter.name.find("gate_proj"), std::string::npos);
  }
  const std::int64_t biases = 8 + 4 + 4 + 8 + 20 + 8 + 2 * 8;  // q, k, v, o, up, down, two norms
  const std::int64_t weights = 8 * 8 + 2 * 4 * 8 + 8 * 8 + 2 * 20 * 8 + 2 * 8;
  EXPECT_EQ(count_parameters(model), 2 * 11 * 8 + 2 * 8 + 3 * (weights + biases));
}

TEST(Parameters, ActiveCountTakesOnlyTheChosenExperts) {
  ModelSpec model = small_llama();
  model.moe = {.experts = 6,
               .experts_per_token = 2,
               .expert_ffn_hidden = 5,
               .shared_experts = 1,
               .shared_ffn_hidden = 7,
               .dense_first_layers = 1};
  const std::int64_t expert = 3 * 5 * 8;                                                // gate, up, down
  EXPECT_EQ(count_parameters(model) - count_active_parameters(model), 2 * 4 * expert);  // 2 MoE layers, 4 idle each
  std::set<std::int64_t> experts;
  for (const Parameter& parameter : layer_parameters(model, 1))
    if (parameter.is_routed_expert()) experts.insert(parameter.expert);
  EXPECT_EQ(experts, (std::set<std::int64_t>{0, 1, 2, 3, 4, 5}));
  for (const Parameter& parameter : layer_parameters(model, 0)) EXPECT_FALSE(parameter.is_routed_expert());
}

TEST(Parameters, NamesAreUnique) {
  ModelSpec model = small_llama();
  model.moe = {.experts = 3, .experts_per_token = 1, .expert_ffn_hidden = 5, .router_bias = true};
  model.mla = {.q_lora_rank = 4, .kv_lora_rank = 3, .qk_nope_head_dim = 2, .qk_rope_head_dim = 2, .v_head_dim = 2};
  model.post_norm = model.norm_bias = model.qkv_bias = true;
  std::vector<std::string> all = names(embedding_parameters(model));
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    for (std::string& name : names(layer_parameters(model, layer))) all.push_back(std::move(name));
  for (std::string& name : names(head_parameters(model))) all.push_back(std::move(name));
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
}

}  // namespace
}  // namespace reckon
