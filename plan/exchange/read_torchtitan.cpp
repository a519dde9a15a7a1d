// TorchTitan's TOML (torchtitan/config/job_config.py; the defaults are those of its dataclasses). Names that moved are
// read in both spellings.
#include <fmt/format.h>

#include <algorithm>

#include "plan/exchange/foreign_reader.h"
#include "plan/exchange/torchtitan_flavors.h"
#include "plan/yaml_reader.h"

namespace reckon {

namespace {

class TorchTitanReader {
 public:
  explicit TorchTitanReader(ForeignReading reading) : options_(reading.options), in_(reading.fields) {}

  void read() {
    read_model();
    read_degrees();
    read_batch();
    read_schedule();
    read_precision();
    read_recomputation();
    read_optimizer();
    ignore_the_rest();
  }

 private:
  void read_model() {
    const std::string name = in_.text({"model.name"}, "model").value_or("llama3");
    const std::string flavor = in_.text_or({"model.flavor"}, "model", "debugmodel");
    const TorchTitanFlavor* found =
        std::find_if(std::begin(kTorchTitanFlavors), std::end(kTorchTitanFlavors),
                     [&](const TorchTitanFlavor& one) { return one.name == name && one.flavor == flavor; });
    if (found != std::end(kTorchTitanFlavors)) {
      layers_ = found->layers;
      return in_.set("model", found->model);
    }
    if (name == "llama3" && flavor == "debugmodel") return set_debug_model();
    in_.missing("model");
    in_.assume("model", "-",
               fmt::format("the shape of {} {} is not known; give model=NAME or a config.json", name, flavor));
  }

  /// torchtitan/models/llama3: dim 256, 6 layers, 16 heads, FFN of 2/3 x 4 x 256 rounded up to 256.
  void set_debug_model() {
    layers_ = 6;
    for (const auto& [key, value] : {std::pair{"layers", 6},
                                     {"hidden", 256},
                                     {"ffn_hidden", 768},
                                     {"heads", 16},
                                     {"vocabulary", 2048},
                                     {"rope_theta", 500000}})
      in_.set(fmt::format("model.{}", key), std::int64_t{value});
    in_.set("model.name", kTorchTitanDebugModel);
  }

  std::int64_t degree(Names names, std::string_view plan_key) {
    const std::int64_t value = in_.count_or(names, plan_key, 1);
    if (value >= 1 && value <= 1 << 16) return value;
    in_.wrong(*names.begin(), fmt::format("{} is {}; 1 to 65536 is possible", *names.begin(), value));
    return 1;
  }

  void read_degrees() {
    const std::int64_t tensor =
        degree({"parallelism.tensor_parallel_degree", "training.tensor_parallel_degree"}, "parallel.tensor");
    pipeline_ =
        degree({"parallelism.pipeline_parallel_degree", "experimental.pipeline_parallel_degree"}, "parallel.pipeline");
    const std::int64_t context =
        degree({"parallelism.context_parallel_degree", "experimental.context_parallel_degree"}, "parallel.ring");
    const std::int64_t replicate = degree(
        {"parallelism.data_parallel_replicate_degree", "training.data_parallel_replicate_degree"}, "parallel.data");
    const std::int64_t expert = degree({"parallelism.expert_parallel_degree"}, "parallel.expert");
    const std::int64_t expert_tensor =
        in_.count({"parallelism.expert_tensor_parallel_degree"}, "parallel.tensor").value_or(tensor);
    if (expert_tensor != tensor && expert > 1)
      in_.not_understood("parallelism.expert_tensor_parallel_degree",
                         "the plan splits experts over the tensor group as all else");
    const std::int64_t others = product_of({tensor, pipeline_, context, replicate});
    const std::int64_t shard = shard_degree(others, expert, context);
    data_ = replicate * shard;
    in_.set("parallel.tensor", tensor);
    in_.set("parallel.pipeline", pipeline_);
    in_.set("parallel.ring", context);
    if (context > 1) in_.set("documents.placement", std::string_view("zigzag"));
    if (expert > 1) in_.set("parallel.expert", expert);
    in_.set("parallel.data", data_);
    in_.set("parallel.sequence", tensor > 1);
    if (tensor > 1)
      in_.note_default("parallelism.tensor_parallel_degree", "with sequence parallelism", "parallel.sequence");
    read_sharding(shard, replicate, context);
  }

  std::int64_t shard_degree(std::int64_t others, std::int64_t expert, std::int64_t context) {
    const std::string_view name = in_.has("training.data_parallel_shard_degree")
                                      ? "training.data_parallel_shard_degree"
                                      : "parallelism.data_parallel_shard_degree";
    const std::int64_t given = in_.count_or({name}, "parallel.data", -1, "-1: the ranks that are left");
    if (others > 1 << 20) {
      in_.wrong(
          "parallelism.tensor_parallel_degree",
          "tensor, pipeline, context and replicate degrees multiply to more than the 2^20 ranks that can be planned");
      return 1;
    }
    if (given < -1 || given == 0 || given > 1 << 20) {
      in_.wrong(name, fmt::format("{} is {}; -1 or a number of ranks is possible", name, given));
      return 1;
    }
    if (given > 0 && options_.devices > 0 && given * others != options_.devices)
      in_.contradiction(name, fmt::format("the degrees multiply to {} x {} = {} ranks, but --devices gives {}", given,
                                          others, given * others, options_.devices));
    if (given > 0) return given;
    if (options_.devices > 0) {
      if (options_.devices % others != 0)
        in_.contradiction(name,
                          fmt::format("{} ranks are no multiple of the other degrees' product {}; nearest: {} or {}",
                                      options_.devices, others, std::max(others, options_.devices / others * others),
                                      (options_.devices / others + 1) * others));
      return std::max<std::int64_t>(1, options_.devices / others);
    }
    const std::int64_t wanted = std::max<std::int64_t>({1, expert / context, (8 + others - 1) / others});
    in_.assume("parallel.data", fmt::format("{}", wanted),
               "TorchTitan takes the number of ranks from its launcher (NGPU); --devices N says");
    return wanted;
  }

  void read_sharding(std::int64_t shard, std::int64_t replicate, std::int64_t context) {
    const std::string after = in_.text_or({"parallelism.fsdp_reshard_after_forward"}, "parallel.zero", "default",
                                          "without a pipeline, parameters are gathered again in backward");
    const bool again = after == "always" || (after == "default" && pipeline_ == 1);
    if (after != "always" && after != "never" && after != "default")
      in_.wrong("parallelism.fsdp_reshard_after_forward",
                fmt::format("parallelism.fsdp_reshard_after_forward {} is not one "
                            "of default, always, never",
                            after));
    const bool sharded = shard * context > 1;
    in_.set("parallel.zero", std::int64_t{!sharded ? 0 : again ? 3 : 2});
    if (sharded && replicate > 1) in_.set("parallel.zero_group", shard * context);
    if (sharded)
      in_.assume("parallel.zero", again ? "3" : "2",
                 "TorchTitan keeps FP32 shards of the weights and no 16-bit copy of them; the plan counts both");
    in_.not_modelled({"parallelism.disable_loss_parallel"}, "whether logits are split; in the plan they always are");
    in_.not_modelled({"parallelism.enable_compiled_autograd"}, "a compiled backward");
  }

  void read_batch() {
    const std::int64_t local =
        in_.count_or({"training.local_batch_size", "training.batch_size"}, "batch.micro_batch", 8);
    const std::int64_t rows =
        in_.count_or({"training.global_batch_size"}, "batch.global_batch", -1, "local batch x data");
    in_.set("batch.sequence_length", in_.count_or({"training.seq_len"}, "batch.sequence_length", 2048));
    BatchFields batch{"training.global_batch_size", "training.local_batch_size", "accumulation"};
    batch.micro = std::max<std::int64_t>(1, local);
    batch.replicas = data_;
    if (rows > 0) batch.global = rows;
    else batch.accumulation = 1;
    set_batch(in_, batch);
    const std::int64_t piece =
        in_.count({"parallelism.pipeline_parallel_microbatch_size"}, "batch.micro_batch").value_or(1);
    if (pipeline_ == 1) return;
    if (!in_.has("parallelism.pipeline_parallel_microbatch_size"))
      in_.note_default("parallelism.pipeline_parallel_microbatch_size", "1", "batch.micro_batch");
    if (piece < 1 || batch.micro % piece != 0)
      return in_.contradiction("parallelism.pipeline_parallel_microbatch_size",
                               fmt::format("{} rows of {} are no multiple of {}", batch.micro,
                                           in_.called("training.local_batch_size"), piece));
    in_.set("batch.micro_batch", piece);
  }

  void read_schedule() {
    const auto schedule = in_.text(
        {"parallelism.pipeline_parallel_schedule", "experimental.pipeline_parallel_schedule"}, "parallel.schedule");
    in_.not_understood("parallelism.pipeline_parallel_split_points",
                       "give parallel.layers_per_stage for stages of your own");
    if (schedule && pipeline_ == 1)
      in_.warn(fmt::format("{} {} does nothing: pipeline_parallel_degree is 1",
                           in_.called("parallelism.pipeline_parallel_schedule"), *schedule));
    if (pipeline_ == 1) return;
    const std::string kind = schedule.value_or("1F1B");
    if (!schedule) in_.note_default("parallelism.pipeline_parallel_schedule", "1F1B", "parallel.schedule");
    if (kind == "GPipe") return in_.set("parallel.schedule", std::string_view("gpipe"));
    if (kind == "1F1B") return in_.set("parallel.schedule", std::string_view("1f1b"));
    if (kind != "Interleaved1F1B")
      in_.not_understood("parallelism.pipeline_parallel_schedule", kind + " is read as Interleaved1F1B");
    in_.set("parallel.schedule", std::string_view("interleaved"));
    const auto per_stage = in_.count({"parallelism.pipeline_parallel_layers_per_stage"}, "parallel.chunks");
    const std::int64_t chunks = per_stage && *per_stage > 0 && layers_ > 0 ? layers_ / (*per_stage * pipeline_) : 2;
    in_.set("parallel.chunks", std::max<std::int64_t>(2, chunks));
  }

  void read_precision() {
    const std::string compute = in_.text_or({"training.mixed_precision_param"}, "precision.compute", "bfloat16");
    const std::string reduce = in_.text_or({"training.mixed_precision_reduce"}, "gradients.stored", "float32");
    const bool eight = uses_float8();
    in_.set("precision.compute", std::string_view(eight ? "fp8_e4m3" : compute == "float32" ? "fp32" : "bf16"));
    in_.set("gradients.stored", std::string_view("fp32"));  // FSDP2 keeps gradients in the format of its FP32 shards
    if (reduce == "bfloat16") in_.set("gradients.wire", std::string_view("bf16"));
    in_.not_modelled_below("quantize.", "which products run in 8 bits; in the plan all of the layers do");
    in_.not_modelled_below("float8.", "which products run in 8 bits; in the plan all of the layers do");
    const bool compiled = in_.flag({"compile.enable", "training.compile"}, "kernels.loss").value_or(false);
    if (!compiled) in_.note_default("compile.enable", "false", "kernels.loss", "FP32 logits and their softmax");
    in_.set("kernels.loss", std::string_view(compiled ? "fused" : "fp32_softmax"));
    in_.set("kernels.activation", std::string_view(compiled ? "fused" : "unfused"));
    in_.not_modelled_below("compile.", "which parts are compiled; the plan takes all of them");
  }

  bool uses_float8() {
    if (in_.flag({"float8.enable_float8_linear"}, "precision.compute").value_or(false)) return true;
    const SourceField* converters = in_.find("model.converters");
    if (converters == nullptr) return false;
    in_.use(converters->key, "precision.compute");
    bool found = converters->value.text.find("float8") != std::string::npos;
    for (const YamlValue& item : converters->value.items)
      found = found || item.text.find("float8") != std::string::npos;
    return found;
  }

  void read_recomputation() {
    const std::string mode = in_.text_or({"activation_checkpoint.mode"}, "activations.recompute", "selective");
    const auto option = in_.text({"activation_checkpoint.selective_ac_option"}, "activations.recompute_layers");
    in_.not_modelled_below("activation_checkpoint.", "which products of a layer are kept; the plan keeps classes");
    if (mode == "none") return in_.set("activations.recompute", std::string_view("none"));
    if (mode != "full" && mode != "selective")
      return in_.wrong("activation_checkpoint.mode",
                       fmt::format("activation_checkpoint.mode {} is not one of none, selective, full", mode));
    const std::string every = option.value_or(in_.has("activation_checkpoint.selective_ac_option") ? "op" : "2");
    if (mode == "selective" && every == "op") {
      in_.assume("activations.recompute", "elementwise", "operator-wise selection keeps products and attention");
      return in_.set("activations.recompute", std::string_view("elementwise"));
    }
    if (mode == "selective" && !option)
      in_.note_default("activation_checkpoint.selective_ac_option", "2", "activations.recompute_layers");
    const std::int64_t period = mode == "full"                                            ? 1
                                : every.size() == 1 && every[0] >= '1' && every[0] <= '9' ? every[0] - '0'
                                                                                          : 0;
    if (period == 0)
      return in_.wrong(
          "activation_checkpoint.selective_ac_option",
          fmt::format("activation_checkpoint.selective_ac_option {} is neither op nor a small number", every));
    in_.set("activations.recompute", std::string_view("full"));
    if (layers_ > 0)
      in_.set("activations.recompute_layers",
              to_yaml(std::vector<std::int64_t>{(layers_ + pipeline_ - 1) / pipeline_ / period}));
  }

  void read_optimizer() {
    const std::string kind = in_.text_or({"optimizer.name"}, "optimizer.kind", "AdamW");
    if (kind != "AdamW" && kind != "Adam") in_.not_understood("optimizer.name", "the plan knows adamw; it is taken");
    in_.set("optimizer.learning_rate", in_.number_or({"optimizer.lr"}, "optimizer.learning_rate", 8e-4));
    copy("optimizer.eps", "optimizer.epsilon");
    copy("optimizer.weight_decay", "optimizer.weight_decay");
    copy("optimizer.beta1", "optimizer.beta1");
    copy("optimizer.beta2", "optimizer.beta2");
    in_.set("optimizer.warmup_steps",
            in_.count_or({"lr_scheduler.warmup_steps", "training.warmup_steps"}, "optimizer.warmup_steps", 200));
    in_.set("optimizer.clip_gradient_norm", in_.number_or({"training.max_norm"}, "optimizer.clip_gradient_norm", 1.0));
    if (const auto steps = in_.count({"training.steps"}, "train.steps")) in_.set("train.steps", *steps);
    if (const auto seed = in_.count({"training.seed"}, "train.seed")) in_.set("train.seed", *seed);
    in_.not_understood("training.enable_cpu_offload",
                       "offloading is not modelled: states stay on the device in the plan");
  }

  void copy(std::string_view name, std::string_view plan_key) {
    if (const auto value = in_.number({name}, plan_key)) in_.set(plan_key, *value);
  }

  void ignore_the_rest() {
    in_.ignore({"model.tokenizer_path", "model.hf_assets_path", "model.norm_type", "model.print_after_conversion",
                "training.dataset", "training.dataset_path", "training.gc_freq", "training.gc_debug",
                "training.deterministic", "training.debug_moe_force_load_balance"},
               "data and housekeeping");
    in_.not_modelled(
        {"parallelism.enable_async_tensor_parallel"},
        "collectives of tensor parallelism beside products; in the plan only those of backward are hidden");
    in_.not_modelled({"optimizer.implementation", "optimizer.fused"}, "the plan's update is one fused kernel");
    in_.not_modelled({"optimizer.early_step_in_backward"},
                     "gradients are freed during backward; the plan keeps all until the update");
    for (const char* group :
         {"job.", "profiling.", "metrics.", "checkpoint.", "comm.", "memory_estimation.", "fault_tolerance.",
          "validation.", "lr_scheduler.", "debug.", "experimental.custom", "logging."})
      in_.ignore_below(group, "logging, checkpoints, evaluation, rate of the training");
  }

  const ImportOptions& options_;
  SourceFields& in_;
  std::int64_t layers_ = 0, pipeline_ = 1, data_ = 1;
};

}  // namespace

void read_torchtitan(ForeignReading reading) {
  TorchTitanReader(reading).read();
}

}  // namespace reckon
