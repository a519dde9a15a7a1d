// The inverse of read_megatron.cpp.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "plan/choices.h"
#include "plan/exchange/export_plan.h"
#include "plan/parse_quantity.h"

namespace reckon {

namespace {

class MegatronWriter {
 public:
  explicit MegatronWriter(const Plan& plan) : plan_(plan), model_(plan.model) {}

  ForeignFile write() {
    write_shape();
    write_block();
    write_latent_attention();
    write_experts();
    write_degrees();
    write_stages();
    write_precision();
    write_kernels();
    write_recomputation();
    write_optimizer();
    const std::int64_t world = plan_.world_size(), per_node = plan_.hardware.devices_per_node;
    const std::int64_t ranks = world % per_node == 0 ? per_node : world < per_node ? world : 1;
    std::string text = "#!/bin/bash\n# Written by reckon export. Add the paths of data, tokenizer and checkpoints.\n";
    if (plan_.parallel.tensor > 1)
      text +=
          "# In the plan, collectives of tensor parallelism wait for the products: --tp-comm-overlap is left out.\n";
    text += fmt::format("ARGUMENTS=(\n{})\n", arguments_);
    text += fmt::format("torchrun --nproc_per_node {} --nnodes {} pretrain_gpt.py \"${{ARGUMENTS[@]}}\" \"$@\"\n",
                        ranks, world / ranks);
    const auto more = keys_without_counterpart(plan_,
                                               {"reckon",
                                                "nodes",
                                                "method",
                                                "batch",
                                                "parallel",
                                                "documents.placement",
                                                "precision.compute",
                                                "kernels.attention",
                                                "kernels.activation",
                                                "kernels.loss",
                                                "kernels.dropout",
                                                "activations.recompute",
                                                "gradients.stored",
                                                "gradients.bucket",
                                                "optimizer",
                                                "train.steps",
                                                "train.seed",
                                                "train.warmup",
                                                "train.timeout",
                                                "sim",
                                                "memory.limit"},
                                               "Megatron-LM's arguments");
    lost_.insert(lost_.end(), more.begin(), more.end());
    return {std::move(text), std::move(lost_)};
  }

 private:
  void flag(std::string_view name) { arguments_ += fmt::format("  {}\n", name); }
  template <class Value>
  void add(std::string_view name, const Value& value) {
    arguments_ += fmt::format("  {} {}\n", name, value);
  }
  void add(std::string_view name, double value) { arguments_ += fmt::format("  {} {}\n", name, write_number(value)); }
  void lose(std::string sentence) { lost_.push_back(std::move(sentence)); }

  void write_shape() {
    add("--num-layers", model_.layers);
    add("--hidden-size", model_.hidden);
    add("--ffn-hidden-size", model_.ffn_hidden);
    add("--num-attention-heads", model_.heads);
    if (!model_.is_mla() && model_.kv_heads != model_.heads) {
      flag("--group-query-attention");
      add("--num-query-groups", model_.kv_heads);
    }
    if (!model_.is_mla() && model_.head_dim * model_.heads != model_.hidden) add("--kv-channels", model_.head_dim);
    add("--seq-length", plan_.batch.sequence_length);
    add("--max-position-embeddings",
        model_.position == Position::learned ? model_.position_rows : plan_.batch.sequence_length);
    add("--vocab-size", model_.vocabulary);
    add("--make-vocab-size-divisible-by", 1);
  }

  void write_block() {
    add("--normalization", model_.norm == Norm::rms_norm ? "RMSNorm" : "LayerNorm");
    add("--norm-epsilon", model_.norm_epsilon);
    if (model_.gated_ffn) flag("--swiglu");
    if (model_.activation == Activation::squared_relu) flag("--squared-relu");
    const bool usual = model_.gated_ffn
                           ? model_.activation == Activation::silu
                           : model_.activation == Activation::gelu || model_.activation == Activation::squared_relu;
    if (!usual)
      lose(
          fmt::format("model.activation {} has no counterpart in Megatron-LM's arguments", name_of(model_.activation)));
    if (!model_.ffn_bias) flag("--disable-bias-linear");
    if (!model_.ffn_bias && model_.qkv_bias) flag("--add-qkv-bias");
    if (!model_.tied_head) flag("--untie-embeddings-and-output-weights");
    if (model_.qk_norm) flag("--qk-layernorm");
    if (model_.embedding_norm) flag("--embed-layernorm");
    write_positions();
    if (model_.sliding_window > 0) add("--window-size", fmt::format("\"({},0)\"", model_.sliding_window - 1));
    for (const auto& [lost, name] : {std::pair{model_.parallel_block, "parallel_block"},
                                     {model_.post_norm, "post_norm"},
                                     {model_.attention_sinks, "attention_sinks"},
                                     {model_.qk_norm_full, "qk_norm_full"},
                                     {model_.head_bias, "head_bias"},
                                     {model_.attention_softcap > 0, "attention_softcap"},
                                     {model_.logit_softcap > 0, "logit_softcap"},
                                     {model_.sliding_window_every > 1, "sliding_window_every"}})
      if (lost) lose(fmt::format("model.{} has no counterpart in Megatron-LM's arguments", name));
  }

  void write_positions() {
    switch (model_.position) {
      case Position::learned: return add("--position-embedding-type", "learned_absolute");
      case Position::alibi: return add("--position-embedding-type", "alibi");
      case Position::none: return add("--position-embedding-type", "none");
      case Position::rope: break;
    }
    const bool yarn = model_.rope_scaling == "yarn";
    add("--position-embedding-type", yarn ? "yarn" : "rope");
    add("--rotary-base", model_.rope_theta);
    if (model_.rope_fraction != 1.0) add("--rotary-percent", model_.rope_fraction);
    if (model_.rope_scaling == "llama3") {
      flag("--use-rope-scaling");
      add("--rope-scaling-factor", model_.rope_scaling_factor);
    } else if (!model_.rope_scaling.empty() && !yarn) {
      lose(fmt::format("model.rope_scaling {} has no counterpart in Megatron-LM's arguments", model_.rope_scaling));
    }
  }

  void write_latent_attention() {
    if (!model_.is_mla()) return;
    flag("--multi-latent-attention");
    if (model_.mla.q_lora_rank > 0) add("--q-lora-rank", model_.mla.q_lora_rank);
    add("--kv-lora-rank", model_.mla.kv_lora_rank);
    add("--qk-head-dim", model_.mla.qk_nope_head_dim);
    add("--qk-pos-emb-head-dim", model_.mla.qk_rope_head_dim);
    add("--v-head-dim", model_.mla.v_head_dim);
  }

  void write_experts() {
    if (!model_.is_moe()) return;
    const MoeSpec& moe = model_.moe;
    add("--num-experts", moe.experts);
    add("--moe-router-topk", moe.experts_per_token);
    add("--moe-ffn-hidden-size", moe.expert_ffn_hidden);
    if (moe.shared_experts > 0) add("--moe-shared-expert-intermediate-size", moe.shared_ffn_hidden);
    if (moe.shared_expert_gate) flag("--moe-shared-expert-gate");
    if (moe.score_correction_bias) flag("--moe-router-enable-expert-bias");
    if (moe.dense_first_layers > 0 || moe.every > 1) add("--moe-layer-freq", fmt::format("\"{}\"", expert_layers()));
    if (moe.expert_bias || moe.router_bias) lose("model.moe biases have no counterpart in Megatron-LM's arguments");
  }

  /// "([0]*1+[1]*26)": runs of layers without and with experts.
  std::string expert_layers() const {
    std::string text;
    for (std::int64_t layer = 0; layer < model_.layers;) {
      const bool experts = model_.layer_is_moe(layer);
      std::int64_t end = layer;
      while (end < model_.layers && model_.layer_is_moe(end) == experts) ++end;
      text += fmt::format("{}[{}]*{}", text.empty() ? "" : "+", experts ? 1 : 0, end - layer);
      layer = end;
    }
    return "(" + text + ")";
  }

  void write_degrees() {
    const ParallelSpec& parallel = plan_.parallel;
    add("--tensor-model-parallel-size", parallel.tensor);
    add("--pipeline-model-parallel-size", parallel.pipeline);
    if (parallel.sequence) flag("--sequence-parallel");
    if (plan_.context() > 1) add("--context-parallel-size", plan_.context());
    if (parallel.ulysses > 1) add("--cp-comm-type", parallel.ring > 1 ? "a2a+p2p" : "a2a");
    if (parallel.ring > 1 && parallel.ulysses > 1)
      add("--hierarchical-context-parallel-sizes", fmt::format("{} {}", parallel.ulysses, parallel.ring));
    if (parallel.expert > 1) add("--expert-model-parallel-size", parallel.expert);
    if (parallel.zero >= 1) flag("--use-distributed-optimizer");
    if (parallel.zero >= 2) {
      flag("--use-megatron-fsdp");
      add("--data-parallel-sharding-strategy", parallel.zero == 2 ? "optim_grads" : "optim_grads_params");
    }
    if (parallel.zero > 0 && parallel.zero_group != 0 && parallel.zero_group != parallel.data * plan_.context())
      lose(fmt::format("parallel.zero_group {} has no counterpart in Megatron-LM's arguments", parallel.zero_group));
    write_overlap();
    add("--micro-batch-size", plan_.batch.micro_batch);
    add("--global-batch-size", plan_.batch.global_batch);
  }

  /// The plan hides reductions behind the backward and ZeRO-3's gathers behind compute; Megatron-LM does when told.
  void write_overlap() {
    if (plan_.parallel.data * plan_.context() == 1) return;
    flag("--overlap-grad-reduce");
    if (plan_.parallel.zero == 3) flag("--overlap-param-gather");
  }

  void write_stages() {
    const ParallelSpec& parallel = plan_.parallel;
    if (parallel.schedule == ScheduleKind::interleaved) add("--num-virtual-stages-per-pipeline-rank", parallel.chunks);
    if (parallel.schedule == ScheduleKind::gpipe)
      lose("parallel.schedule gpipe has no counterpart in Megatron-LM: it runs 1F1B");
    const std::vector<std::int64_t> layers =
        parallel.layers_per_stage.empty() ? uneven_layers() : parallel.layers_per_stage;
    const bool even = std::adjacent_find(layers.begin(), layers.end(), std::not_equal_to<>()) == layers.end();
    if (layers.size() < 2 || even) return;
    add("--decoder-first-pipeline-num-layers", layers.front());
    add("--decoder-last-pipeline-num-layers", layers.back());
    const bool same =
        std::adjacent_find(layers.begin() + 1, layers.end() - 1, std::not_equal_to<>()) == layers.end() - 1;
    if (!same)
      lose(fmt::format("parallel.layers_per_stage [{}] needs --pipeline-model-parallel-layout",
                       fmt::join(layers, ", ")));
  }

  /// Where the layers do not divide into the stages: Megatron-LM wants all but the first and the last to be alike.
  std::vector<std::int64_t> uneven_layers() {
    const std::int64_t stages = plan_.virtual_stages();
    if (stages < 2 || model_.layers % stages == 0) return {};
    const std::int64_t between = (model_.layers + stages - 1) / stages, rest = model_.layers - between * (stages - 2);
    if (rest < 0 || plan_.parallel.chunks > 1) {
      lose(fmt::format("{} layers on {} stages need --pipeline-model-parallel-layout", model_.layers, stages));
      return {};
    }
    std::vector<std::int64_t> layers(static_cast<std::size_t>(stages), between);
    layers.front() = (rest + 1) / 2;
    layers.back() = rest / 2;
    lose(fmt::format("parallel.layers_per_stage auto is written as [{}]", fmt::join(layers, ", ")));
    return layers;
  }

  void write_precision() {
    const NumberFormat compute = plan_.precision.compute;
    const bool eight = compute == NumberFormat::fp8_e4m3 || compute == NumberFormat::fp8_e5m2;
    if (compute == NumberFormat::fp16) flag("--fp16");
    else if (compute == NumberFormat::bf16 || eight) flag("--bf16");
    else if (compute != NumberFormat::fp32)
      lose(fmt::format("precision.compute {} has no counterpart in Megatron-LM's arguments", name_of(compute)));
    if (eight) add("--fp8-format", compute == NumberFormat::fp8_e4m3 ? "e4m3" : "hybrid");
    const NumberFormat gradients = plan_.gradients.stored;
    if (gradients == NumberFormat::fp32) flag("--accumulate-allreduce-grads-in-fp32");
    else if (gradients == NumberFormat::bf16) flag("--grad-reduce-in-bf16");
    else if (gradients != NumberFormat::fp16 || compute != NumberFormat::fp16)
      lose(fmt::format("gradients.stored {} has no counterpart in Megatron-LM's arguments", name_of(gradients)));
    if (plan_.gradients.bucket != GradientSpec().bucket)
      add("--ddp-bucket-size", plan_.gradients.bucket.value / (gradients == NumberFormat::fp32 ? 4 : 2));
  }

  void write_kernels() {
    const char* dropout = plan_.kernels.dropout ? "0.1" : "0.0";
    add("--attention-dropout", dropout);
    add("--hidden-dropout", dropout);
    add("--attention-backend", plan_.kernels.attention == AttentionKernel::flash ? "flash" : "unfused");
    if (plan_.kernels.loss == LossKernel::fused) flag("--cross-entropy-loss-fusion");
    else if (plan_.kernels.loss != LossKernel::fp32_logits)
      lose(fmt::format("kernels.loss {} has no counterpart in Megatron-LM's arguments", name_of(plan_.kernels.loss)));
    if (plan_.kernels.activation == ActivationKernel::unfused) flag("--no-bias-swiglu-fusion");
  }

  std::int64_t layers_of_a_stage() const {
    return (model_.layers + plan_.parallel.pipeline - 1) / plan_.parallel.pipeline;
  }

  void write_recomputation() {
    const Recompute mode = plan_.activations.recompute;
    if (mode == Recompute::none) return;
    if (mode == Recompute::elementwise)
      return lose("activations.recompute elementwise has no counterpart; --recompute-modules names single modules");
    add("--recompute-granularity", mode == Recompute::full ? "full" : "selective");
    if (mode == Recompute::selective) return;
    const std::vector<std::int64_t>& layers = plan_.activations.recompute_layers;
    const std::int64_t most = layers.empty() ? layers_of_a_stage() : *std::max_element(layers.begin(), layers.end());
    const bool all = most >= layers_of_a_stage() || layers.empty();
    add("--recompute-method", all ? "uniform" : "block");
    add("--recompute-num-layers", all ? 1 : std::max<std::int64_t>(1, most / plan_.parallel.chunks));
    if (std::any_of(layers.begin(), layers.end(), [&](std::int64_t one) { return one != most; }))
      lose(fmt::format("activations.recompute_layers [{}]: Megatron-LM recomputes as many layers on every stage",
                       fmt::join(layers, ", ")));
  }

  void write_optimizer() {
    const OptimizerSpec& optimizer = plan_.optimizer;
    add("--optimizer", optimizer.kind == OptimizerKind::sgd ? "sgd" : "adam");
    add("--lr", optimizer.learning_rate);
    add("--min-lr", optimizer.minimum_learning_rate);
    add("--lr-warmup-iters", optimizer.warmup_steps);
    add("--lr-decay-style", name_of(optimizer.schedule));
    add("--weight-decay", optimizer.weight_decay);
    add("--adam-beta1", optimizer.beta1);
    add("--adam-beta2", optimizer.beta2);
    add("--adam-eps", optimizer.epsilon);
    add("--clip-grad", optimizer.clip_gradient_norm);
    if (optimizer.states != NumberFormat::fp32) {
      flag("--use-precision-aware-optimizer");
      add("--exp-avg-dtype", optimizer.states == NumberFormat::int8 ? "fp8" : name_of(optimizer.states));
    }
    add("--train-iters", plan_.train.steps);
    add("--seed", plan_.train.seed);
  }

  const Plan& plan_;
  const ModelSpec& model_;
  std::string arguments_;
  std::vector<std::string> lost_;
};

}  // namespace

ForeignFile export_megatron(const Plan& plan) {
  return MegatronWriter(plan).write();
}

}  // namespace reckon
