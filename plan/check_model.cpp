#include "plan/check_model.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace reckon {

namespace {

constexpr std::int64_t kMostLayers = 10000, kMostExperts = 10000, kWidest = 1 << 24,
                       kMostRows = (std::int64_t{1} << 31) - 1;
constexpr double kMostWeights = 1e16;

class Findings {
 public:
  void add(std::string key, std::string message) { list_.push_back({std::move(message), {}, 0, 0, std::move(key)}); }
  void range(std::string_view key, std::int64_t value, std::int64_t least, std::int64_t most) {
    if (value < least || value > most)
      add(std::string(key), fmt::format("{} is {}; a whole number from {} to {} is needed", key, value, least, most));
  }
  void positive(std::string_view key, double value) {
    if (!(value > 0)) add(std::string(key), fmt::format("{} is {}; a number above 0 is needed", key, value));
  }
  void unless(bool right, std::string_view key, std::string message) {
    if (!right) add(std::string(key), std::move(message));
  }
  bool none() const { return list_.empty(); }
  std::vector<Diagnostic> take() { return std::move(list_); }

 private:
  std::vector<Diagnostic> list_;
};

void check_attention(const ModelSpec& model, Findings& found) {
  found.range("heads", model.heads, 1, kWidest);
  found.range("kv_heads", model.kv_heads, 1, kWidest);
  if (model.heads > 0 && model.kv_heads > 0)
    found.unless(model.heads % model.kv_heads == 0, "kv_heads",
                 fmt::format("{} heads are not divisible by {} kv_heads", model.heads, model.kv_heads));
  if (model.is_mla()) return;
  if (model.head_dim == 0 && model.heads > 0 && model.hidden > 0)
    found.add("head_dim",
              fmt::format("hidden {} is not divisible by {} heads; give head_dim, or a number of heads that "
                          "divides hidden",
                          model.hidden, model.heads));
  else found.range("head_dim", model.head_dim, 1, kWidest);
  if (model.position == Position::rope)
    found.unless(model.head_dim % 2 == 0, "head_dim",
                 fmt::format("head_dim is {}; rotary positions need an even one", model.head_dim));
}

void check_mla(const ModelSpec& model, Findings& found) {
  const MlaSpec& mla = model.mla;
  found.range("mla.q_lora_rank", mla.q_lora_rank, 0, kWidest);
  found.range("mla.kv_lora_rank", mla.kv_lora_rank, 1, kWidest);
  found.range("mla.qk_nope_head_dim", mla.qk_nope_head_dim, 1, kWidest);
  found.range("mla.qk_rope_head_dim", mla.qk_rope_head_dim, 1, kWidest);
  found.range("mla.v_head_dim", mla.v_head_dim, 1, kWidest);
  found.unless(mla.qk_rope_head_dim % 2 == 0, "mla.qk_rope_head_dim",
               fmt::format("mla.qk_rope_head_dim is {}; rotary positions need an even one", mla.qk_rope_head_dim));
  found.unless(!model.qk_norm && !model.qk_norm_full && !model.attention_sinks, "mla",
               "latent attention has neither query and key norms nor attention sinks");
}

void check_moe(const ModelSpec& model, Findings& found) {
  const MoeSpec& moe = model.moe;
  found.range("moe.experts", moe.experts, 1, kMostExperts);
  found.range("moe.experts_per_token", moe.experts_per_token, 1, moe.experts);
  found.range("moe.expert_ffn_hidden", moe.expert_ffn_hidden, 1, kWidest);
  found.range("moe.shared_experts", moe.shared_experts, 0, kMostExperts);
  found.range("moe.shared_ffn_hidden", moe.shared_ffn_hidden, moe.shared_experts > 0 ? 1 : 0, kWidest);
  found.unless(
      moe.shared_experts > 0 || moe.shared_ffn_hidden == 0, "moe.shared_ffn_hidden",
      fmt::format("moe.shared_ffn_hidden is {}, but moe.shared_experts is 0; give the number of shared experts",
                  moe.shared_ffn_hidden));
  found.range("moe.dense_first_layers", moe.dense_first_layers, 0, model.layers);
  found.range("moe.every", moe.every, 1, kMostLayers);
  found.unless(!moe.shared_expert_gate || moe.shared_experts > 0, "moe.shared_expert_gate",
               "moe.shared_expert_gate needs moe.shared_experts of at least 1");
}

void check_norms(const ModelSpec& model, Findings& found) {
  found.positive("norm_epsilon", model.norm_epsilon);
  found.range("block_norms", model.block_norms, 1, 2);
  found.unless(model.pre_norm || model.post_norm, "pre_norm", "a layer needs pre_norm or post_norm");
  found.unless(!model.norm_bias || model.norm == Norm::layer_norm, "norm_bias", "norm_bias needs norm: layer_norm");
  found.unless(!model.qk_norm || !model.qk_norm_full, "qk_norm", "qk_norm and qk_norm_full exclude each other");
}

void check_positions(const ModelSpec& model, Findings& found) {
  if (model.position == Position::learned) {
    found.range("position_offset", model.position_offset, 0, kMostRows - 1);
    found.range("position_rows", model.position_rows, 1 + model.position_offset, kMostRows);
  }
  found.positive("rope_theta", model.rope_theta);
  found.unless(model.rope_fraction > 0 && model.rope_fraction <= 1, "rope_fraction",
               fmt::format("rope_fraction is {}; a share above 0 and at most 1 is needed", model.rope_fraction));
  found.positive("rope_scaling_factor", model.rope_scaling_factor);
  found.positive("rope_low_frequency_factor", model.rope_low_frequency_factor);
  found.unless(model.rope_high_frequency_factor > model.rope_low_frequency_factor, "rope_high_frequency_factor",
               fmt::format("rope_high_frequency_factor is {}; it must be above rope_low_frequency_factor, {}",
                           model.rope_high_frequency_factor, model.rope_low_frequency_factor));
  found.range("rope_original_positions", model.rope_original_positions, 1, kMostRows);
  found.range("sliding_window", model.sliding_window, 0, kMostRows);
  found.range("sliding_window_every", model.sliding_window_every, 1, kMostLayers);
  found.unless(model.attention_softcap >= 0, "attention_softcap", "attention_softcap must not be negative");
  found.unless(model.logit_softcap >= 0, "logit_softcap", "logit_softcap must not be negative");
}

bool has_dense_layer(const ModelSpec& model) {
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    if (!model.layer_is_moe(layer)) return true;
  return false;
}

/// A little more than the number of weights, in floating point, so that it cannot overflow.
double weights_at_most(const ModelSpec& model) {
  const auto d = [](std::int64_t value) { return static_cast<double>(value); };
  const MlaSpec& mla = model.mla;
  const double head = d(model.head_dim + mla.qk_nope_head_dim + mla.qk_rope_head_dim + mla.v_head_dim);
  const double inner = d(model.hidden) + d(mla.q_lora_rank + mla.kv_lora_rank) + 1;
  const double attention = 4.0 * d(model.heads) * head * inner + 2.0 * inner * inner;
  const double ffn =
      d(model.ffn_hidden) + d(model.moe.experts) * d(model.moe.expert_ffn_hidden + 1) + d(model.moe.shared_ffn_hidden);
  const double layer = attention + 3.0 * (ffn + 4.0) * (d(model.hidden) + 1);
  return d(model.layers) * layer + (2.0 * d(model.vocabulary) + d(model.position_rows) + 4) * d(model.hidden);
}

}  // namespace

void fill_derived_sizes(ModelSpec& model) {
  if (model.kv_heads == 0) model.kv_heads = model.heads;
  if (model.head_dim == 0 && model.heads > 0 && model.hidden % model.heads == 0)
    model.head_dim = model.hidden / model.heads;
  if (!model.is_moe()) return;
  MoeSpec& moe = model.moe;
  if (moe.expert_ffn_hidden == 0) moe.expert_ffn_hidden = model.ffn_hidden;
  if (moe.shared_ffn_hidden == 0 && moe.shared_experts > 0 && moe.shared_experts <= kMostExperts &&
      moe.expert_ffn_hidden <= kWidest)
    moe.shared_ffn_hidden = moe.shared_experts * moe.expert_ffn_hidden;
}

std::vector<Diagnostic> check_model(const ModelSpec& model) {
  Findings found;
  found.range("layers", model.layers, 1, kMostLayers);
  found.range("hidden", model.hidden, 1, kWidest);
  found.range("vocabulary", model.vocabulary, 1, kMostRows);
  check_attention(model, found);
  check_norms(model, found);
  check_positions(model, found);
  if (model.mla.kv_lora_rank != 0) check_mla(model, found);
  if (model.moe.experts != 0) check_moe(model, found);
  if (!found.none()) return found.take();

  if (has_dense_layer(model)) found.range("ffn_hidden", model.ffn_hidden, 1, kWidest);
  else found.range("ffn_hidden", model.ffn_hidden, 0, kWidest);
  const double weights = weights_at_most(model);
  found.unless(
      weights <= kMostWeights, "layers",
      fmt::format("the model would have about {:.1g} weights; at most {:g} can be planned", weights, kMostWeights));
  return found.take();
}

}  // namespace reckon
