// nanotron's YAML (nanotron/config): model, parallelism and tokens stand in one file.
#include <fmt/format.h>

#include "plan/check_model.h"
#include "plan/exchange/foreign_reader.h"
#include "plan/spec_yaml.h"
#include "plan/yaml_reader.h"

namespace reckon {

namespace {

class NanotronReader {
 public:
  explicit NanotronReader(ForeignReading reading)
      : options_(reading.options), plan_(reading.plan), in_(reading.fields) {}

  void read() {
    read_degrees();
    read_model();
    read_batch();
    read_states();
    read_optimizer();
    ignore_the_rest();
  }

 private:
  std::int64_t need(std::string_view name, std::string_view plan_key) {
    if (const auto value = in_.count({name}, plan_key)) return *value;
    if (!in_.has(name)) in_.wrong(name, fmt::format("the key {} is missing: it decides {}", name, plan_key));
    return 1;
  }

  std::int64_t degree(std::string_view name, std::string_view plan_key) {
    const std::int64_t value = in_.count_or({name}, plan_key, 1);
    if (value >= 1 && value <= 1 << 16) return value;
    in_.wrong(name, fmt::format("{} is {}; 1 to 65536 is possible", name, value));
    return 1;
  }

  void read_degrees() {
    data_ = degree("parallelism.dp", "parallel.data");
    tensor_ = degree("parallelism.tp", "parallel.tensor");
    const std::int64_t pipeline = degree("parallelism.pp", "parallel.pipeline");
    const std::int64_t context = degree("parallelism.context_parallel_size", "parallel.ring");
    const std::int64_t expert = degree("parallelism.expert_parallel_size", "parallel.expert");
    const std::int64_t ranks = product_of({data_, tensor_, pipeline, context});
    if (options_.devices > 0 && ranks != options_.devices)
      in_.contradiction("parallelism.dp",
                        fmt::format("dp x tp x pp x context_parallel_size = {} x {} x {} x {} = {} ranks, "
                                    "but --devices gives {}",
                                    data_, tensor_, pipeline, context, ranks, options_.devices));
    in_.set("parallel.data", data_);
    in_.set("parallel.tensor", tensor_);
    in_.set("parallel.pipeline", pipeline);
    if (context > 1) in_.set("parallel.ring", context);
    if (expert > 1) in_.set("parallel.expert", expert);
    const std::string mode = in_.text_or({"parallelism.tp_mode"}, "parallel.sequence", "ALL_REDUCE");
    in_.set("parallel.sequence", mode == "REDUCE_SCATTER" && tensor_ > 1);
    const std::string engine = in_.text_or({"parallelism.pp_engine"}, "parallel.schedule", "1f1b");
    if (engine != "1f1b" && engine != "afab")
      in_.wrong("parallelism.pp_engine", fmt::format("parallelism.pp_engine {} is neither 1f1b nor afab", engine));
    in_.set("parallel.schedule", std::string_view(engine == "afab" ? "gpipe" : "1f1b"));
    const bool recompute = in_.flag_or({"parallelism.recompute_layer"}, "activations.recompute", false);
    in_.set("activations.recompute", std::string_view(recompute ? "full" : "none"));
  }

  void read_model() {
    const auto key = [](const char* name) { return std::string("model.model_config.") + name; };
    ModelSpec model;
    model.name = stem_of(plan_.file);
    model.hidden = need(key("hidden_size"), "model.hidden");
    model.layers = need(key("num_hidden_layers"), "model.layers");
    model.heads = need(key("num_attention_heads"), "model.heads");
    model.ffn_hidden = need(key("intermediate_size"), "model.ffn_hidden");
    model.vocabulary = need(key("vocab_size"), "model.vocabulary");
    model.kv_heads = in_.count({key("num_key_value_heads")}, "model.kv_heads").value_or(model.heads);
    model.norm_epsilon = in_.number_or({key("rms_norm_eps")}, "model.norm_epsilon", 1e-6);
    model.rope_theta = in_.number_or({key("rope_theta")}, "model.rope_theta", 10000.0);
    model.tied_head = in_.flag_or({key("tie_word_embeddings")}, "model.tied_head", false);
    model.qkv_bias = in_.flag({key("attention_bias")}, "model.qkv_bias").value_or(false);
    model.sliding_window = in_.count({key("sliding_window_size")}, "model.sliding_window").value_or(0);
    if (in_.flag({key("is_qwen2_config")}, "model.qkv_bias").value_or(false)) model.family = "qwen2";
    in_.flag({key("is_llama_config")}, "model.family");
    read_experts(model);
    pad(model);
    fill_derived_sizes(model);
    in_.set("model", model_yaml(model));
    const std::int64_t positions = in_.count({key("max_position_embeddings")}, "batch.sequence_length").value_or(0);
    sequence_ = need("tokens.sequence_length", "batch.sequence_length");
    if (positions > 0 && positions < sequence_)
      in_.warn(fmt::format("{} is {}, beyond {} of {}", in_.called("tokens.sequence_length"), sequence_,
                           in_.called(key("max_position_embeddings")), positions));
    const std::string attention =
        in_.text({key("_attn_implementation")}, "kernels.attention").value_or("flash_attention_2");
    in_.set("kernels.attention", std::string_view(attention == "eager" ? "unfused" : "flash"));
  }

  void read_experts(ModelSpec& model) {
    const std::string group = "model.model_config.moe_config.";
    model.moe.experts = in_.count({group + "num_experts"}, "model.moe.experts").value_or(0);
    if (model.moe.experts == 0) return;
    model.family = "qwen2_moe";
    model.moe.experts_per_token = in_.count_or({group + "top_k"}, "model.moe.experts_per_token", 1);
    model.moe.expert_ffn_hidden = in_.count_or({group + "moe_intermediate_size"}, "model.moe.expert_ffn_hidden",
                                               model.ffn_hidden, "intermediate_size");
    if (in_.flag({group + "enable_shared_expert"}, "model.moe.shared_experts").value_or(false)) {
      model.moe.shared_experts = 1;
      model.moe.shared_ffn_hidden = in_.count_or({group + "shared_expert_intermediate_size"},
                                                 "model.moe.shared_ffn_hidden", model.ffn_hidden, "intermediate_size");
      model.moe.shared_expert_gate = true;
    }
    in_.ignore_below(group, "routing that changes no number of experts a token visits");
  }

  /// The table is padded to a multiple of make_vocab_size_divisible_by x tp.
  void pad(ModelSpec& model) {
    const std::int64_t multiple = in_.count_or({"model.make_vocab_size_divisible_by"}, "model.vocabulary", 1) * tensor_;
    if (multiple < 1)
      return in_.wrong("model.make_vocab_size_divisible_by", "make_vocab_size_divisible_by must be at least 1");
    const std::int64_t padded = (model.vocabulary + multiple - 1) / multiple * multiple;
    if (padded != model.vocabulary)
      in_.assume(
          "model.vocabulary", fmt::format("{}", padded),
          fmt::format("{} padded to a multiple of make_vocab_size_divisible_by x tp = {}", model.vocabulary, multiple));
    model.vocabulary = padded;
  }

  void read_batch() {
    in_.set("batch.sequence_length", sequence_);
    BatchFields batch{"global batch", "tokens.micro_batch_size", "tokens.batch_accumulation_per_replica"};
    batch.micro = need("tokens.micro_batch_size", "batch.micro_batch");
    batch.accumulation = in_.count_or({"tokens.batch_accumulation_per_replica"}, "batch.global_batch", 1);
    batch.replicas = data_;
    set_batch(in_, batch);
    if (const auto steps = in_.count({"tokens.train_steps"}, "train.steps")) in_.set("train.steps", *steps);
    in_.ignore({"tokens.limit_test_batches", "tokens.limit_val_batches", "tokens.val_check_interval"}, "evaluation");
  }

  void read_states() {
    const std::string type = in_.text_or({"model.dtype"}, "precision.compute", "bfloat16");
    const std::string compute = type == "bfloat16"  ? "bf16"
                                : type == "float16" ? "fp16"
                                : type == "float32" ? "fp32"
                                                    : "";
    if (compute.empty())
      in_.wrong("model.dtype", fmt::format("model.dtype {} is not one of bfloat16, float16, float32", type));
    else in_.set("precision.compute", std::string_view(compute));
    const bool full = in_.flag_or({"optimizer.accumulate_grad_in_fp32"}, "gradients.stored", false);
    in_.set("gradients.stored", std::string_view(full || compute.empty() ? "fp32" : compute));
    if (const auto megabytes = in_.count({"model.ddp_bucket_cap_mb"}, "gradients.bucket"); megabytes && *megabytes > 0)
      in_.set("gradients.bucket", to_yaml(Bytes(*megabytes << 20)));
    const std::int64_t zero = in_.count_or({"optimizer.zero_stage"}, "parallel.zero", 0);
    if (zero < 0 || zero > 1)
      in_.not_understood("optimizer.zero_stage", "nanotron shards optimizer states (1) or nothing (0)");
    in_.set("parallel.zero", std::int64_t{zero >= 1 ? 1 : 0});
  }

  void read_optimizer() {
    const std::string group = "optimizer.optimizer_factory.";
    copy(group + "adam_beta1", "optimizer.beta1");
    copy(group + "adam_beta2", "optimizer.beta2");
    copy(group + "adam_eps", "optimizer.epsilon");
    copy("optimizer.weight_decay", "optimizer.weight_decay");
    copy("optimizer.clip_grad", "optimizer.clip_gradient_norm");
    copy("optimizer.learning_rate_scheduler.learning_rate", "optimizer.learning_rate");
    copy("optimizer.learning_rate_scheduler.min_decay_lr", "optimizer.minimum_learning_rate");
    if (const auto steps = in_.count({"optimizer.learning_rate_scheduler.lr_warmup_steps"}, "optimizer.warmup_steps"))
      in_.set("optimizer.warmup_steps", *steps);
    const auto decay = in_.text({"optimizer.learning_rate_scheduler.lr_decay_style"}, "optimizer.schedule");
    if (decay && (*decay == "linear" || *decay == "cosine")) in_.set("optimizer.schedule", std::string_view(*decay));
    const auto kind = in_.text({group + "name"}, "optimizer.kind");
    if (kind && *kind == "sgd") in_.set("optimizer.kind", std::string_view("sgd"));
    in_.ignore({group + "torch_adam_is_fused"}, "which implementation of Adam");
    in_.ignore_below("optimizer.learning_rate_scheduler.", "rate of the training, not of a step");
    if (const auto seed = in_.count({"general.seed"}, "train.seed")) in_.set("train.seed", *seed);
  }

  void copy(const std::string& name, std::string_view plan_key) {
    if (const auto value = in_.number({name}, plan_key)) in_.set(plan_key, *value);
  }

  void ignore_the_rest() {
    in_.ignore({"model.model_config.bos_token_id", "model.model_config.eos_token_id", "model.model_config.pad_token_id",
                "model.model_config.initializer_range", "model.model_config.pretraining_tp",
                "model.model_config.use_cache", "model.model_config.hidden_act", "model.model_config.rope_interleaved",
                "model.model_config.rope_scaling", "model.model_config.max_position_embeddings"},
               "no change of shapes");
    in_.not_modelled({"model.model_config._fused_rms_norm", "model.model_config._fused_rotary_emb",
                      "model.model_config._use_qkv_packed"},
                     "which kernels run; the plan counts fused ones");
    in_.not_modelled({"model.model_config._use_doc_masking", "model.model_config.flex_attention_mask"},
                     "which tokens attend to which; documents.attention says it in the plan");
    in_.not_modelled(
        {"parallelism.tp_linear_async_communication"},
        "collectives of tensor parallelism beside products; in the plan only those of backward are hidden");
    in_.not_modelled({"parallelism.tp_recompute_allgather"},
                     "whether gathered inputs are kept; the plan gathers again");
    in_.not_modelled({"parallelism.moe_layer_recompute"},
                     "recomputation of experts alone; activations.classes says it");
    for (const char* group :
         {"general.", "logging.", "checkpoints.", "data_stages", "data.", "tokenizer.", "profiler", "s3_upload",
          "lighteval", "model.init_method", "metrics_logging", "doremi", "kill_switch_path"})
      in_.ignore_below(group, "data, logging and checkpoints");
  }

  const ImportOptions& options_;
  ForeignPlan& plan_;
  SourceFields& in_;
  std::int64_t data_ = 1, tensor_ = 1, sequence_ = 1;
};

}  // namespace

void read_nanotron(ForeignReading reading) {
  NanotronReader(reading).read();
}

}  // namespace reckon
