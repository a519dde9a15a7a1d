// Megatron-LM arguments (megatron/training/arguments.py; the defaults are those of its parser).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "plan/check_model.h"
#include "plan/exchange/foreign_reader.h"
#include "plan/exchange/layer_pattern.h"
#include "plan/exchange/megatron_ignored.h"
#include "plan/spec_yaml.h"
#include "plan/yaml_reader.h"

namespace reckon {

namespace {

constexpr std::string_view kWorld = "launcher: nnodes x nproc_per_node";

class MegatronReader {
 public:
  explicit MegatronReader(ForeignReading reading)
      : options_(reading.options), plan_(reading.plan), in_(reading.fields) {}

  void read() {
    read_shape();
    read_block();
    read_latent_attention();
    read_experts();
    read_degrees();
    read_world();
    read_vocabulary();
    read_batch();
    read_stages();
    read_precision();
    read_kernels();
    read_recomputation();
    read_optimizer();
    ignore_the_rest();
    fill_derived_sizes(model_);
    in_.set("model", model_yaml(model_));
  }

 private:
  std::int64_t need(std::string_view name, std::string_view plan_key) {
    if (const auto value = in_.count({name}, plan_key)) return *value;
    if (!in_.has(name)) in_.wrong(name, fmt::format("the argument {} is missing: it decides {}", name, plan_key));
    return 0;
  }

  void read_shape() {
    model_.name = stem_of(plan_.file);
    model_.layers = need("--num-layers", "model.layers");
    model_.hidden = need("--hidden-size", "model.hidden");
    model_.heads = need("--num-attention-heads", "model.heads");
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
    sequence_ = in_.count({"--seq-length", "--encoder-seq-length"}, "batch.sequence_length").value_or(0);
    if (sequence_ > 0) in_.set("batch.sequence_length", sequence_);
    else in_.missing("batch.sequence_length");
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
      if (in_.flag({"--use-rope-scaling"}, "model.rope_scaling").value_or(false)) model_.rope_scaling = "llama3";
      in_.ignore({"--max-position-embeddings"}, "with rotary positions it is no table");
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
    plan_.used.push_back({field.key, text, field.line, "model.sliding_window", "tokens before the query, plus itself"});
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
    const auto set = [&](std::string note) {
      plan_.used.push_back({field.key, field.value.text, field.line, "model.moe.dense_first_layers", std::move(note)});
    };
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

  void read_degrees() {
    tensor_ = in_.count_or({"--tensor-model-parallel-size"}, "parallel.tensor", 1);
    pipeline_ = in_.count_or({"--pipeline-model-parallel-size"}, "parallel.pipeline", 1);
    context_ = in_.count_or({"--context-parallel-size"}, "parallel.ring", 1);
    expert_ = in_.count_or({"--expert-model-parallel-size"}, "parallel.expert", 1);
    for (std::int64_t* degree : {&tensor_, &pipeline_, &context_, &expert_})
      if (*degree < 1 || *degree > 1 << 20)
        *degree = 1, in_.wrong("--tensor-model-parallel-size", "every parallel size is a whole number from 1 to 2^20");
    in_.set("parallel.tensor", tensor_);
    in_.set("parallel.pipeline", pipeline_);
    read_context();
    if (model_.is_moe() || expert_ > 1) in_.set("parallel.expert", expert_);
    const std::int64_t expert_tensor =
        in_.count({"--expert-tensor-parallel-size"}, "parallel.tensor", "of the experts").value_or(tensor_);
    if (model_.is_moe() && expert_tensor != tensor_)
      in_.not_understood("--expert-tensor-parallel-size",
                         fmt::format("the plan splits experts over the tensor group of {} as all else", tensor_));
    bool sequence = in_.flag_or({"--sequence-parallel"}, "parallel.sequence", false);
    if (sequence && tensor_ == 1) {
      in_.warn(fmt::format("{} does nothing at tensor parallel size 1: Megatron switches it off",
                           in_.called("--sequence-parallel")));
      sequence = false;
    }
    in_.set("parallel.sequence", sequence);
  }

  void read_context() {
    if (context_ == 1) return in_.ignore({"--cp-comm-type"}, "there is no context parallelism");
    const std::string kind = in_.text_or({"--cp-comm-type"}, "parallel.ring", "p2p");
    const SourceField* levels = in_.find("--hierarchical-context-parallel-sizes");
    std::int64_t ulysses = kind == "a2a" ? context_ : 1;
    if (kind == "a2a+p2p" && levels != nullptr && levels->value.items.size() == 2) {
      const std::vector<std::int64_t> sizes =
          numbers_in(levels->value.items[0].text + " " + levels->value.items[1].text);
      if (sizes.size() != 2 || sizes[0] * sizes[1] != context_)
        return in_.contradiction(levels->key, fmt::format("{} must multiply to {} = {}", in_.called(levels->key),
                                                          in_.called("--context-parallel-size"), context_));
      ulysses = sizes[0];
      plan_.used.push_back({levels->key, "", levels->line, "parallel.ulysses", "inside; the ring outside"});
    } else if (kind != "p2p" && kind != "a2a") {
      in_.not_understood("--cp-comm-type",
                         fmt::format("{} is read as p2p: key/value blocks pass around the ring", kind));
    }
    if (ulysses > 1) in_.set("parallel.ulysses", ulysses);
    if (ulysses == context_) return;
    in_.set("parallel.ring", context_ / ulysses);
    in_.set("documents.placement", std::string_view("zigzag"));
  }

  /// Ranks: --devices, else what the launcher starts; the data parallel size is what is left.
  void read_world() {
    const auto per_node =
        in_.count({"--nproc_per_node", "--gpus-per-node", "#SBATCH --gpus-per-node", "#SBATCH --ntasks-per-node"},
                  "parallel.data");
    const auto nodes = in_.count({"--nnodes", "#SBATCH --nodes"}, "parallel.data");
    std::int64_t world = options_.devices;
    const std::int64_t others = tensor_ * pipeline_ * context_;
    if (world == 0 && per_node && *per_node > 0) {
      world = *per_node * nodes.value_or(1);
      if (!nodes) in_.assume("parallel.data", "1 node", "the launcher names no number of nodes");
    }
    if (world == 0) {
      world = others * std::max<std::int64_t>(1, expert_ / std::gcd(expert_, context_));
      in_.assume(
          "parallel.data", fmt::format("{}", world / others),
          fmt::format("the file does not say how many ranks run; {} are the fewest for its sizes; --devices N says",
                      world));
    }
    if (world % others != 0 || world / others > 1 << 20) {
      const char* cause =
          in_.has("--pipeline-model-parallel-size") ? "--pipeline-model-parallel-size" : "--tensor-model-parallel-size";
      const std::int64_t below = world / others * others;
      in_.contradiction(
          cause,
          fmt::format("tensor x pipeline x context = {} x {} x {} = {} ranks, but {} {} ranks{}; legal: {}{}; "
                      "--devices N sets another number",
                      tensor_, pipeline_, context_, others,
                      options_.devices > 0 ? "--devices gives" : "the launcher starts", world,
                      launcher_text(per_node, nodes), below > 0 ? fmt::format("{} or ", below) : "", below + others));
    }
    data_ = std::max<std::int64_t>(1, world / others);
    in_.set("parallel.data", data_);
    in_.ignore({"--node_rank", "--master_addr", "--master_port", "--rdzv_id", "--rdzv_backend", "--rdzv_endpoint",
                "--max_restarts", "--nnodes", "--nproc_per_node", "--tee", "--log-dir", "--redirects"},
               kWorld);
  }

  std::string launcher_text(const std::optional<std::int64_t>& per_node,
                            const std::optional<std::int64_t>& nodes) const {
    if (options_.devices > 0 || !per_node) return "";
    return fmt::format(" ({} {} x {} {})", in_.called("--nproc_per_node"), *per_node, in_.called("--nnodes"),
                       nodes.value_or(1));
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

  void read_batch() {
    BatchFields batch{"--global-batch-size", "--micro-batch-size", "accumulation"};
    batch.micro = in_.count({"--micro-batch-size"}, "batch.micro_batch").value_or(0);
    batch.global = in_.count({"--global-batch-size"}, "batch.global_batch").value_or(0);
    batch.replicas = data_;
    if (batch.micro == 0 && !in_.has("--micro-batch-size"))
      in_.wrong("--micro-batch-size", "the argument --micro-batch-size is missing: it decides batch.micro_batch");
    if (batch.global == 0) {
      batch.accumulation = 1;
      in_.note_default("--global-batch-size", "micro batch x data", "batch.global_batch");
    }
    if (batch.micro > 0) set_batch(in_, batch);
    read_ramp(batch);
    for (const char* schedule : {"--step-batch-size-schedule", "--global-batch-size-schedule"})
      if (in_.find(schedule) != nullptr)
        plan_.ignored.push_back({schedule, "", 0, {}, "the plan is that of the full --global-batch-size"});
  }

  /// start, increment, samples: each batch on the way must be a whole number of micro-batches on every replica.
  void read_ramp(const BatchFields& batch) {
    const SourceField* ramp = in_.find("--rampup-batch-size");
    if (ramp == nullptr) return;
    plan_.ignored.push_back({ramp->key, "", ramp->line, {}, "the plan is that of the full --global-batch-size"});
    const std::int64_t rows = batch.micro * data_;
    if (ramp->value.kind != YamlValue::Kind::sequence || ramp->value.items.size() < 2 || rows <= 0) return;
    for (std::size_t i = 0; i < 2; ++i) {
      const auto numbers = numbers_in(ramp->value.items[i].text);
      if (numbers.empty() || numbers.front() % rows == 0) continue;
      in_.contradiction("--rampup-batch-size",
                        fmt::format("{}: the {} of {} rows is no multiple of micro batch x data = {} x {} = {}",
                                    in_.called("--rampup-batch-size"), i == 0 ? "start" : "increment", numbers.front(),
                                    batch.micro, data_, rows));
    }
  }

  void read_stages() {
    const auto per_chunk = in_.count({"--num-layers-per-virtual-pipeline-stage"}, "parallel.chunks");
    std::int64_t chunks = in_.count({"--num-virtual-stages-per-pipeline-rank"}, "parallel.chunks").value_or(1);
    if (per_chunk && *per_chunk > 0) {
      chunks = model_.layers / pipeline_ / *per_chunk;
      if (chunks < 1 || chunks * pipeline_ * *per_chunk != model_.layers) {
        in_.contradiction("--num-layers-per-virtual-pipeline-stage",
                          fmt::format("{} layers are not {} stages x a whole number of chunks of {} layers ({}, {})",
                                      model_.layers, pipeline_, *per_chunk, in_.called("--num-layers"),
                                      in_.called("--num-layers-per-virtual-pipeline-stage")));
      }
    }
    if (chunks > 1 && pipeline_ == 1) {
      in_.warn("virtual pipeline stages do nothing without a pipeline");
      chunks = 1;
    }
    in_.set("parallel.schedule", std::string_view(chunks > 1 ? "interleaved" : "1f1b"));
    if (chunks > 1) in_.set("parallel.chunks", chunks);
    read_uneven_stages(std::max<std::int64_t>(1, std::min<std::int64_t>(chunks, 1024)) * pipeline_);
    in_.not_understood("--pipeline-model-parallel-layout", "give parallel.layers_per_stage for stages of your own");
  }

  void read_uneven_stages(std::int64_t stages) {
    const auto first = in_.count({"--decoder-first-pipeline-num-layers"}, "parallel.layers_per_stage");
    const auto last = in_.count({"--decoder-last-pipeline-num-layers"}, "parallel.layers_per_stage");
    const std::string partition = in_.text({"--pp-partition-method"}, "parallel.layers_per_stage").value_or("");
    const bool with_tables = partition.find("embedding") != std::string::npos;  // Megatron-DeepSpeed
    const auto has_slot = [&](std::string_view name) {
      return in_.flag({name}, "parallel.layers_per_stage").value_or(false) || with_tables;
    };
    const bool embedding = has_slot("--account-for-embedding-in-pipeline-split");
    const bool loss = has_slot("--account-for-loss-in-pipeline-split");
    const std::int64_t slots = model_.layers + (embedding ? 1 : 0) + (loss ? 1 : 0);
    if (stages == 1 || stages > 100000) return;
    std::vector<std::int64_t> layers;
    if (first || last) {
      const std::int64_t between = stages - (first ? 1 : 0) - (last ? 1 : 0);
      const std::int64_t rest = model_.layers - first.value_or(0) - last.value_or(0);
      if (between > 0 && (rest < 0 || rest % between != 0))
        return in_.contradiction(first ? "--decoder-first-pipeline-num-layers" : "--decoder-last-pipeline-num-layers",
                                 fmt::format("{} of {} layers are left for {} stages in between, which does not come "
                                             "out even",
                                             rest, model_.layers, between));
      layers.assign(static_cast<std::size_t>(stages), between > 0 ? rest / between : 0);
      if (first) layers.front() = *first;
      if (last) layers.back() = *last;
    } else if (slots % stages == 0) {
      layers.assign(static_cast<std::size_t>(stages), slots / stages);
      if (embedding) --layers.front();
      if (loss) --layers.back();
    } else {
      const std::int64_t lower = slots / stages * stages, upper = lower + stages;
      return in_.contradiction(
          "--num-layers", fmt::format("{} layers{} do not divide into {} stages of the pipeline; legal: {} or {} "
                                      "layers, or --decoder-first-pipeline-num-layers",
                                      model_.layers, embedding || loss ? " with the slots of embedding and loss" : "",
                                      stages, lower - (slots - model_.layers), upper - (slots - model_.layers)));
    }
    if (embedding || loss || first || last) in_.set("parallel.layers_per_stage", to_yaml(layers));
  }

  void read_precision() {
    const bool bf16 = in_.flag({"--bf16"}, "precision.compute").value_or(false);
    const bool fp16 = in_.flag({"--fp16"}, "precision.compute").value_or(false);
    if (bf16 && fp16) in_.contradiction("--fp16", "--bf16 and --fp16 exclude each other");
    const std::string compute = bf16 ? "bf16" : fp16 ? "fp16" : "fp32";
    if (!bf16 && !fp16) in_.note_default("--bf16", "false", "precision.compute", "FP32");
    const auto eight = in_.text({"--fp8-format"}, "precision.compute");
    in_.set("precision.compute", std::string_view(eight ? "fp8_e4m3" : compute));
    in_.not_understood("--fp8-param-gather", "weights are held in 16 bits by the plan, in 8 by Megatron");
    in_.not_understood("--fp4-format", "4-bit products need precision.compute=nvfp4");
    read_gradients(compute);
    read_sharding();
  }

  void read_gradients(const std::string& compute) {
    const bool half = in_.flag({"--grad-reduce-in-bf16"}, "gradients.stored").value_or(false);
    const bool full = in_.flag({"--accumulate-allreduce-grads-in-fp32"}, "gradients.stored").value_or(false);
    if (half && full)
      in_.contradiction("--grad-reduce-in-bf16",
                        "--grad-reduce-in-bf16 and --accumulate-allreduce-grads-in-fp32 "
                        "exclude each other");
    if (!half && !full)
      in_.note_default("--accumulate-allreduce-grads-in-fp32", compute == "bf16" ? "true" : "false", "gradients.stored",
                       compute == "bf16" ? "Megatron switches it on with --bf16" : "");
    in_.set("gradients.stored", std::string_view(half ? "bf16" : compute == "fp16" && !full ? "fp16" : "fp32"));
  }

  void read_sharding() {
    std::int64_t zero = in_.flag_or({"--use-distributed-optimizer"}, "parallel.zero", false) ? 1 : 0;
    const bool fully = in_.flag({"--use-megatron-fsdp", "--use-custom-fsdp"}, "parallel.zero").value_or(false) ||
                       in_.flag({"--use-torch-fsdp2"}, "parallel.zero").value_or(false);
    if (fully) {
      const std::string strategy = in_.text_or({"--data-parallel-sharding-strategy"}, "parallel.zero",
                                               in_.has("--use-torch-fsdp2") ? "optim_grads_params" : "no_shard");
      const std::vector<std::string> known = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
      const auto found = std::find(known.begin(), known.end(), strategy);
      if (found == known.end())
        in_.wrong(
            "--data-parallel-sharding-strategy",
            fmt::format("--data-parallel-sharding-strategy {} is not one of {}", strategy, fmt::join(known, ", ")));
      else zero = found - known.begin();
    } else {
      in_.ignore({"--data-parallel-sharding-strategy"}, "without --use-megatron-fsdp it does nothing");
    }
    in_.set("parallel.zero", zero);
    if (zero > 0 && data_ * context_ == 1)
      in_.warn(fmt::format("{} shards nothing: there is one replica", in_.called("--use-distributed-optimizer")));
  }

  void read_kernels() {
    const double attention = in_.number_or({"--attention-dropout"}, "kernels.dropout", 0.1);
    const double hidden = in_.number_or({"--hidden-dropout"}, "kernels.dropout", 0.1);
    in_.set("kernels.dropout", attention > 0 || hidden > 0);
    const std::string backend = in_.text({"--attention-backend"}, "kernels.attention").value_or("");
    const bool local = in_.text({"--transformer-impl"}, "kernels.attention").value_or("transformer_engine") == "local";
    const bool flash = in_.flag({"--use-flash-attn"}, "kernels.attention").value_or(false);
    const bool unfused = backend == "unfused" || backend == "local" || (backend.empty() && local && !flash);
    if (backend.empty() && !local && !flash)
      in_.note_default("--transformer-impl", "transformer_engine", "kernels.attention",
                       "attention that stores no scores");
    in_.set("kernels.attention", std::string_view(unfused ? "unfused" : "flash"));
    const bool fused_loss = in_.flag_or({"--cross-entropy-loss-fusion"}, "kernels.loss", false);
    in_.ignore({"--cross-entropy-fusion-impl"}, "which fused kernel");
    in_.set("kernels.loss", std::string_view(fused_loss ? "fused" : "fp32_logits"));
    if (in_.flag({"--no-bias-swiglu-fusion"}, "kernels.activation").value_or(false))
      in_.set("kernels.activation", std::string_view("unfused"));
  }

  void read_recomputation() {
    std::string granularity = in_.text({"--recompute-granularity"}, "activations.recompute").value_or("");
    if (in_.flag({"--recompute-activations"}, "activations.recompute").value_or(false)) granularity = "selective";
    if (in_.flag({"--checkpoint-activations"}, "activations.recompute")
            .value_or(false)) {  // older versions: every layer
      in_.set("activations.recompute", std::string_view("full"));
      return in_.set("activations.recompute_layers", to_yaml(std::vector<std::int64_t>{most_layers()}));
    }
    if (granularity.empty()) {
      in_.note_default("--recompute-granularity", "none", "activations.recompute");
      in_.ignore({"--recompute-method", "--recompute-num-layers", "--recompute-modules"},
                 "without --recompute-granularity it does nothing");
      return in_.set("activations.recompute", std::string_view("none"));
    }
    if (granularity != "selective" && granularity != "full")
      return in_.wrong("--recompute-granularity",
                       fmt::format("--recompute-granularity {} is neither selective nor full", granularity));
    in_.set("activations.recompute", std::string_view(granularity));
    if (granularity == "full") return read_recomputed_layers();
    if (const SourceField* modules = in_.find("--recompute-modules")) {
      if (modules->value.text == "core_attn") {
        plan_.used.push_back({modules->key, "core_attn", modules->line, "activations.recompute", {}});
      } else {
        in_.not_understood("--recompute-modules",
                           "the plan recomputes the attention core; other modules by "
                           "activations.classes");
      }
    }
    in_.set("activations.recompute_layers", to_yaml(std::vector<std::int64_t>{most_layers()}));
  }

  /// Layers of the fullest stage: one number that stands for all layers of every stage.
  std::int64_t most_layers() const {
    const YamlValue* parallel = plan_.plan.find("parallel");
    const YamlValue* listed = parallel == nullptr ? nullptr : parallel->find("layers_per_stage");
    if (listed == nullptr) return pipeline_ > 0 ? (model_.layers + pipeline_ - 1) / pipeline_ : model_.layers;
    std::vector<std::int64_t> layers;
    from_yaml(*listed, layers);
    std::vector<std::int64_t> sums(static_cast<std::size_t>(pipeline_), 0);
    for (std::size_t i = 0; i < layers.size(); ++i) sums[i % sums.size()] += layers[i];
    return *std::max_element(sums.begin(), sums.end());
  }

  void read_recomputed_layers() {
    const std::string method = in_.text({"--recompute-method"}, "activations.recompute_layers").value_or("");
    const auto number = in_.count({"--recompute-num-layers"}, "activations.recompute_layers");
    if (method != "uniform" && method != "block")
      in_.contradiction("--recompute-granularity",
                        "--recompute-granularity full needs --recompute-method uniform or block");
    std::int64_t layers = most_layers();
    if (method == "block" && number) {
      const YamlValue* chunks = plan_.plan.find("parallel")->find("chunks");
      layers = std::min<std::int64_t>(layers, *number * (chunks == nullptr ? 1 : std::stoll(chunks->text)));
    } else if (method == "uniform" && number && *number > 1) {
      in_.warn(fmt::format("{} recomputes groups of {} layers; the plan keeps the input of every layer",
                           in_.called("--recompute-num-layers"), *number));
    }
    in_.set("activations.recompute_layers", to_yaml(std::vector<std::int64_t>{layers}));
    in_.not_understood("--distribute-saved-activations", "the kept inputs are not spread over the tensor group");
  }

  void read_optimizer() {
    const std::string kind = in_.text_or({"--optimizer"}, "optimizer.kind", "adam");
    if (kind != "adam" && kind != "sgd") in_.not_understood("--optimizer", kind + " is read as adam");
    in_.set("optimizer.kind", std::string_view(kind == "sgd" ? "sgd" : "adamw"));
    copy("--lr", "optimizer.learning_rate");
    copy("--min-lr", "optimizer.minimum_learning_rate");
    if (const auto steps = in_.count({"--lr-warmup-iters"}, "optimizer.warmup_steps"))
      in_.set("optimizer.warmup_steps", *steps);
    const std::string decay = in_.text_or({"--lr-decay-style"}, "optimizer.schedule", "linear");
    if (decay == "constant" || decay == "linear" || decay == "cosine")
      in_.set("optimizer.schedule", std::string_view(decay));
    else in_.not_understood("--lr-decay-style", "the plan knows constant, linear and cosine");
    copy_or("--weight-decay", "optimizer.weight_decay", 0.01);
    copy_or("--adam-beta1", "optimizer.beta1", 0.9);
    copy_or("--adam-beta2", "optimizer.beta2", 0.999);
    copy_or("--adam-eps", "optimizer.epsilon", 1e-8);
    copy_or("--clip-grad", "optimizer.clip_gradient_norm", 1.0);
    if (const auto states = in_.text({"--exp-avg-dtype"}, "optimizer.states"))
      in_.set("optimizer.states", std::string_view(*states == "fp8" ? "int8" : *states));
    in_.ignore({"--exp-avg-sq-dtype", "--use-precision-aware-optimizer", "--main-grads-dtype", "--main-params-dtype"},
               "--exp-avg-dtype decides the moments of the plan");
    if (const auto steps = in_.count({"--train-iters"}, "train.steps")) in_.set("train.steps", *steps);
    in_.set("train.seed", in_.count_or({"--seed"}, "train.seed", 1234));
    in_.not_understood("--optimizer-cpu-offload", "offloading is not modelled: states stay on the device in the plan");
    in_.not_understood("--cpu-offloading", "offloading is not modelled: activations stay on the device in the plan");
  }

  void copy(std::string_view name, std::string_view plan_key) {
    if (const auto value = in_.number({name}, plan_key)) in_.set(plan_key, *value);
  }
  void copy_or(std::string_view name, std::string_view plan_key, double otherwise) {
    in_.set(plan_key, in_.number_or({name}, plan_key, otherwise));
  }

  void ignore_the_rest() {
    for (const IgnoredArguments& group : kIgnoredByMegatronReader)
      for (std::size_t at = 0; at < group.names.size();) {
        const std::size_t end = std::min(group.names.find(' ', at), group.names.size());
        in_.ignore({group.names.substr(at, end - at)}, group.why);
        at = end + 1;
      }
    in_.ignore_below("#SBATCH", "the batch system");
    in_.ignore_below("--inference", "inference");
    in_.ignore_below("--rl-", "reinforcement learning");
  }

  const ImportOptions& options_;
  ForeignPlan& plan_;
  SourceFields& in_;
  ModelSpec model_;
  std::int64_t sequence_ = 0, tensor_ = 1, pipeline_ = 1, context_ = 1, expert_ = 1, data_ = 1;
};

}  // namespace

void read_megatron(ForeignReading reading) {
  MegatronReader(reading).read();
}

}  // namespace reckon
