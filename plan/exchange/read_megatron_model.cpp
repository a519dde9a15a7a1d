// What Megatron-LM arguments say of the model.
#include <fmt/format.h>

#include <algorithm>

#include "plan/check_model.h"
#include "plan/exchange/layer_pattern.h"
#include "plan/exchange/megatron_parts.h"

namespace reckon {

namespace {

class MegatronModelReader {
 public:
  MegatronModelReader(ForeignReading reading, std::int64_t tensor, std::int64_t sequence)
      : plan_(reading.plan), in_(reading.fields), tensor_(tensor), sequence_(sequence) {}

  ModelSpec read() {
    read_shape();
    read_block();
    read_latent_attention();
    read_experts();
    read_vocabulary();
    fill_derived_sizes(model_);
    return std::move(model_);
  }

 private:
  void read_shape() {
    model_.name = stem_of(plan_.file);
    model_.layers = need_megatron_count(in_, "--num-layers", "model.layers");
    model_.hidden = need_megatron_count(in_, "--hidden-size", "model.hidden");
    model_.heads = need_megatron_count(in_, "--num-attention-heads", "model.heads");
    model_.gated_ffn = in_.flag_or({"--swiglu"}, "model.gated_ffn", false);
    const bool squared = in_.flag({"--squared-relu"}, "model.activation").value_or(false);
    model_.activation = model_.gated_ffn ? Activation::silu : squared ? Activation::squared_relu : Activation::gelu;
    if (!model_.gated_ffn && !squared) in_.note_default("--swiglu", "GELU", "model.activation");
    const std::int64_t usual = model_.gated_ffn ? model_.hidden * 8 / 3 / 64 * 64 : 4 * model_.hidden;
    model_.ffn_hidden = in_.count_or({"--ffn-hidden-size"}, "model.ffn_hidden", usual,
                                     model_.gated_ffn ? "8/3 of --hidden-size, a multiple of 64" : "4 x --hidden-size");
    model_.kv_heads = model_.heads;
    if (in_.flag({"--group-query-attention"}, "model.kv_heads").value_or(false))
      model_.kv_heads = in_.count_or({"--num-query-groups"}, "model.kv_heads", 1);
    else in_.ignore({"--num-query-groups"}, "without --group-query-attention it does nothing");
    model_.head_dim = in_.count({"--kv-channels"}, "model.head_dim").value_or(0);
  }
  void read_block() {
    const std::string norm = in_.text_or({"--normalization"}, "model.norm", "LayerNorm");
    model_.norm = norm == "RMSNorm" ? Norm::rms_norm : Norm::layer_norm;
    if (norm != "RMSNorm" && norm != "LayerNorm")
      in_.wrong("--normalization", fmt::format("--normalization {} is neither LayerNorm nor RMSNorm", norm));
    model_.norm_bias = model_.norm == Norm::layer_norm;
    model_.norm_epsilon = in_.number_or({"--norm-epsilon", "--layernorm-epsilon"}, "model.norm_epsilon", 1e-5);
    const bool no_bias = in_.flag({"--disable-bias-linear"}, "model.ffn_bias").value_or(false);
    if (!no_bias) in_.note_default("--disable-bias-linear", "false", "model.ffn_bias", "linear layers have biases");
    model_.qkv_bias = !no_bias || in_.flag({"--add-qkv-bias"}, "model.qkv_bias").value_or(false);
    model_.projection_bias = model_.ffn_bias = !no_bias;
    const bool untied = in_.flag({"--untie-embeddings-and-output-weights"}, "model.tied_head").value_or(false);
    if (!untied) in_.note_default("--untie-embeddings-and-output-weights", "false", "model.tied_head", "one table");
    model_.tied_head = !untied;
    model_.qk_norm = in_.flag({"--qk-layernorm"}, "model.qk_norm").value_or(false);
    model_.embedding_norm = in_.flag({"--embed-layernorm"}, "model.embedding_norm").value_or(false);
    read_positions();
    if (const SourceField* window = in_.find("--window-size")) read_window(*window);
    if (model_.norm == Norm::layer_norm && model_.position == Position::learned) model_.family = "gpt2";
  }

  void read_positions() {
    std::string kind = in_.flag({"--use-rotary-position-embeddings"}, "model.position").value_or(false) ? "rope" : "";
    if (kind.empty()) kind = in_.text_or({"--position-embedding-type"}, "model.position", "learned_absolute");
    else in_.ignore({"--position-embedding-type"}, "--use-rotary-position-embeddings decides");
    if (kind == "learned_absolute") {
      model_.position = Position::learned;
      model_.position_rows = in_.count({"--max-position-embeddings"}, "model.position_rows").value_or(0);
      if (model_.position_rows == 0)
        in_.wrong("--max-position-embeddings", "--max-position-embeddings is missing: learned positions need a table");
      if (sequence_ > model_.position_rows && model_.position_rows > 0)
        in_.contradiction("--seq-length",
                          fmt::format("{} is {}, but {} has only {} rows", in_.called("--seq-length"), sequence_,
                                      in_.called("--max-position-embeddings"), model_.position_rows));
    } else if (kind == "rope" || kind == "yarn") {
      model_.position = Position::rope;
      if (kind == "yarn") model_.rope_scaling = "yarn";
      model_.rope_theta = in_.number_or({"--rotary-base"}, "model.rope_theta", 10000.0);
      model_.rope_fraction = in_.number_or({"--rotary-percent"}, "model.rope_fraction", 1.0);
      if (in_.flag({"--use-rope-scaling"}, "model.rope_scaling").value_or(false)) {
        model_.rope_scaling = "llama3";
        model_.rope_scaling_factor = in_.number_or({"--rope-scaling-factor"}, "model.rope_scaling_factor", 8.0);
      } else {
        in_.ignore({"--rope-scaling-factor"}, "without --use-rope-scaling frequencies are not scaled");
      }
      in_.ignore({"--max-position-embeddings", "--no-position-embedding"}, "with rotary positions there is no table");
    } else if (kind == "none" || kind == "alibi") {
      model_.position = kind == "none" ? Position::none : Position::alibi;
      in_.ignore({"--max-position-embeddings"}, "there is no table of positions");
    } else {
      in_.wrong("--position-embedding-type", fmt::format("--position-embedding-type {} is not one of learned_absolute, "
                                                         "rope, yarn, alibi, none",
                                                         kind));
    }
  }

  /// "(128,0)" or two numbers: tokens to the left and to the right.
  void read_window(const SourceField& field) {
    const std::string text =
        field.value.kind == YamlValue::Kind::sequence ? field.value.items.front().text : field.value.text;
    const std::vector<std::int64_t> numbers = numbers_in(text);
    if (numbers.empty()) return in_.wrong("--window-size", "--window-size needs two numbers, as in (128,0)");
    model_.sliding_window = numbers.front() + 1;  // Megatron counts the tokens before the query
    in_.use(field.key, "model.sliding_window", "tokens before the query, plus itself");
  }

  void read_latent_attention() {
    if (!in_.flag({"--multi-latent-attention"}, "model.mla").value_or(false)) {
      return in_.ignore({"--q-lora-rank", "--kv-lora-rank", "--qk-head-dim", "--qk-pos-emb-head-dim", "--v-head-dim"},
                        "without --multi-latent-attention it does nothing");
    }
    model_.mla.q_lora_rank = in_.count({"--q-lora-rank"}, "model.mla.q_lora_rank").value_or(0);
    model_.mla.kv_lora_rank = in_.count_or({"--kv-lora-rank"}, "model.mla.kv_lora_rank", 32);
    model_.mla.qk_nope_head_dim = in_.count_or({"--qk-head-dim"}, "model.mla.qk_nope_head_dim", 128);
    model_.mla.qk_rope_head_dim = in_.count_or({"--qk-pos-emb-head-dim"}, "model.mla.qk_rope_head_dim", 64);
    model_.mla.v_head_dim = in_.count_or({"--v-head-dim"}, "model.mla.v_head_dim", 128);
    model_.kv_heads = model_.heads;
    model_.head_dim = model_.mla.qk_nope_head_dim + model_.mla.qk_rope_head_dim;
    if (model_.qk_norm) {  // norms of the latents, which latent attention has anyway
      model_.qk_norm = false;
    }
  }

  void read_experts() {
    in_.not_understood("--mtp-num-layers",
                       "multi-token prediction layers are not modelled: their memory and time are missing");
    in_.ignore({"--mtp-loss-scaling-factor"}, "weights of losses");
    model_.moe.experts = in_.count({"--num-experts"}, "model.moe.experts").value_or(0);
    if (model_.moe.experts == 0) {
      return in_.ignore(
          {"--moe-router-topk", "--moe-ffn-hidden-size", "--moe-layer-freq", "--moe-shared-expert-intermediate-size"},
          "without --num-experts it does nothing");
    }
    MoeSpec& moe = model_.moe;
    moe.experts_per_token = in_.count_or({"--moe-router-topk"}, "model.moe.experts_per_token", 2);
    moe.expert_ffn_hidden =
        in_.count_or({"--moe-ffn-hidden-size"}, "model.moe.expert_ffn_hidden", model_.ffn_hidden, "--ffn-hidden-size");
    if (const auto width = in_.count({"--moe-shared-expert-intermediate-size"}, "model.moe.shared_ffn_hidden")) {
      moe.shared_ffn_hidden = *width;
      moe.shared_experts = *width > 0 ? 1 : 0;
    }
    moe.shared_expert_gate = in_.flag({"--moe-shared-expert-gate"}, "model.moe.shared_expert_gate").value_or(false);
    moe.score_correction_bias =
        in_.flag({"--moe-router-enable-expert-bias"}, "model.moe.score_correction_bias").value_or(false);
    if (const SourceField* pattern = in_.find("--moe-layer-freq")) read_moe_layers(*pattern);
    else in_.note_default("--moe-layer-freq", "1", "model.moe.every");
    in_.not_understood("--moe-expert-capacity-factor",
                       "dropped tokens are not modelled: every token visits its experts");
    in_.not_understood("--moe-latent-size", "experts in a latent space are not modelled");
    model_.family = moe.shared_experts > 0 ? "deepseek_v2" : "mixtral";
  }

  void read_moe_layers(const SourceField& field) {
    const auto layers = layer_pattern(field.value.text, model_.layers);
    const auto set = [&](const std::string& note) { in_.use(field.key, "model.moe.dense_first_layers", note); };
    if (!layers) {
      return in_.wrong("--moe-layer-freq", fmt::format("--moe-layer-freq {} is neither a number nor a list such as "
                                                       "([0]*1+[1]*26) with one entry for each of {} layers",
                                                       field.value.text, model_.layers));
    }
    const auto first = std::find(layers->begin(), layers->end(), true);
    model_.moe.dense_first_layers = first - layers->begin();
    if (std::find(first, layers->end(), false) == layers->end()) return set("");
    for (std::int64_t every = 2; every <= model_.layers; ++every) {
      model_.moe.every = every, model_.moe.dense_first_layers = 0;
      std::int64_t experts = 0;
      for (std::int64_t layer = 0; layer < model_.layers; ++layer) experts += model_.layer_is_moe(layer) ? 1 : 0;
      if (experts == std::count(layers->begin(), layers->end(), true))
        return set(fmt::format("as many layers have experts; the plan puts them last of every {}", every));
    }
    model_.moe.every = 1, model_.moe.dense_first_layers = 0;
    in_.not_understood("--moe-layer-freq",
                       "this order of layers cannot be expressed: all layers have experts in the plan");
  }

  /// Megatron pads the table to a multiple of --make-vocab-size-divisible-by x the tensor parallel size.
  void read_vocabulary() {
    const std::string tokenizer = in_.text({"--tokenizer-type"}, "model.vocabulary").value_or("");
    auto size = in_.count({"--vocab-size"}, "model.vocabulary");
    if (size && tokenizer == "NullTokenizer") {
      ++*size;
      in_.assume("model.vocabulary", fmt::format("{}", *size),
                 "NullTokenizer adds an end-of-document token to --vocab-size");
    }
    if (!size && (tokenizer == "GPT2BPETokenizer" || tokenizer == "Llama2Tokenizer")) {
      size = tokenizer == "GPT2BPETokenizer" ? 50257 : 32000;
      in_.assume("model.vocabulary", fmt::format("{}", *size), fmt::format("the tokens of {}", tokenizer));
    }
    if (const auto fixed = in_.count({"--pad-vocab-size-to", "--padded-vocab-size"}, "model.vocabulary")) {
      in_.ignore({"--make-vocab-size-divisible-by"}, "the padded size is given");
      model_.vocabulary = *fixed;
      return;
    }
    const std::int64_t divisor = in_.count_or({"--make-vocab-size-divisible-by"}, "model.vocabulary", 128) * tensor_;
    if (!size) {
      in_.missing("model.vocabulary");
      return in_.assume("model.vocabulary", "-",
                        "the tokenizer's size stands in none of the arguments; pad it to a "
                        "multiple of " +
                            std::to_string(divisor));
    }
    if (divisor < 1)
      return in_.wrong("--make-vocab-size-divisible-by", "--make-vocab-size-divisible-by must be at least 1");
    model_.vocabulary = (*size + divisor - 1) / divisor * divisor;
    if (model_.vocabulary != *size)
      in_.assume(
          "model.vocabulary", fmt::format("{}", model_.vocabulary),
          fmt::format("{} padded to a multiple of {} = --make-vocab-size-divisible-by x tensor", *size, divisor));
  }

  ForeignPlan& plan_;
  SourceFields& in_;
  std::int64_t tensor_, sequence_;
  ModelSpec model_;
};

}  // namespace

std::int64_t need_megatron_count(SourceFields& fields, std::string_view name, std::string_view plan_key) {
  if (const auto value = fields.count({name}, plan_key)) return *value;
  if (!fields.has(name)) fields.wrong(name, fmt::format("the argument {} is missing: it decides {}", name, plan_key));
  return 0;
}

ModelSpec read_megatron_model(ForeignReading reading, std::int64_t tensor, std::int64_t sequence) {
  return MegatronModelReader(reading, tensor, sequence).read();
}

}  // namespace reckon
