// accelerate's YAML (huggingface.co/docs/accelerate, "FSDP" and "DeepSpeed" pages). It says how many processes shard
// what; model and batch belong to the training script.
#include <fmt/format.h>

#include <array>

#include "plan/exchange/foreign_reader.h"

namespace reckon {

namespace {

/// FSDP 1's strategies by name and by number (1 to 5).
struct Strategy {
  std::string_view name;
  std::int64_t zero;
  bool hybrid;  // sharded inside a node, replicated over nodes
};
constexpr std::array<Strategy, 5> kStrategies = {{{"FULL_SHARD", 3, false},
                                                  {"SHARD_GRAD_OP", 2, false},
                                                  {"NO_SHARD", 0, false},
                                                  {"HYBRID_SHARD", 3, true},
                                                  {"HYBRID_SHARD_ZERO2", 2, true}}};

class AccelerateReader {
 public:
  explicit AccelerateReader(ForeignReading reading) : options_(reading.options), in_(reading.fields) {}

  void read() {
    read_world();
    read_precision();
    if (kind_ == "FSDP") read_fsdp();
    else if (kind_ == "DEEPSPEED") read_deepspeed_part();
    else if (kind_ == "MEGATRON_LM") read_megatron_part();
    else in_.set("parallel.zero", std::int64_t{0});
    set_degrees();
    ignore_the_rest();
    for (const char* key : {"model", "batch.sequence_length"}) in_.missing(key);
  }

 private:
  void read_world() {
    kind_ = in_.text_or({"distributed_type"}, "parallel.zero", "NO");
    const std::string known = "FSDP, DEEPSPEED, MEGATRON_LM, MULTI_GPU, MULTI_CPU, NO";
    if ((", " + known + ",").find(", " + kind_ + ",") == std::string::npos && kind_ != "no")
      in_.wrong("distributed_type", fmt::format("distributed_type {} is not one of {}", kind_, known));
    nodes_ = in_.count_or({"num_machines"}, "parallel.data", 1);
    const std::int64_t processes = in_.count_or({"num_processes"}, "parallel.data", 1, "of all machines together");
    world_ = options_.devices > 0 ? options_.devices : processes;
    if (nodes_ < 1 || world_ < 1 || world_ % nodes_ != 0) {
      in_.contradiction("num_processes",
                        fmt::format("{} processes ({}) do not spread evenly over {} machines ({}); "
                                    "num_processes counts all machines",
                                    world_, in_.called("num_processes"), nodes_, in_.called("num_machines")));
      nodes_ = world_ = 1;
    }
  }

  void read_precision() {
    const std::string mixed = in_.text_or({"mixed_precision"}, "precision.compute", "no");
    if (mixed == "fp8") in_.set("precision.compute", std::string_view("fp8_e4m3"));
    else if (mixed == "bf16" || mixed == "fp16") in_.set("precision.compute", std::string_view(mixed));
    else if (mixed == "no" || mixed == "false") in_.set("precision.compute", std::string_view("fp32"));
    else in_.wrong("mixed_precision", fmt::format("mixed_precision {} is not one of no, fp16, bf16, fp8", mixed));
    in_.ignore_below("fp8_config", "how numbers are scaled");
  }

  void read_fsdp() {
    const std::int64_t version = in_.count_or({"fsdp_config.fsdp_version"}, "parallel.zero", 1);
    const Strategy strategy = version >= 2 ? second_version() : first_version();
    in_.set("parallel.zero", strategy.zero);
    if (strategy.hybrid) in_.set("parallel.zero_group", world_ / nodes_);
    if (in_.flag({"fsdp_config.fsdp_offload_params"}, "parallel.zero").value_or(false))
      in_.not_understood("fsdp_config.fsdp_offload_params",
                         "offloading is not modelled: the plan keeps parameters on the device");
    const bool recompute = in_.flag_or({"fsdp_config.fsdp_activation_checkpointing"}, "activations.recompute", false);
    in_.set("activations.recompute", std::string_view(recompute ? "full" : "none"));
    const std::string wrap = in_.text({"fsdp_config.fsdp_auto_wrap_policy"}, "parallel.zero").value_or("NO_WRAP");
    if (wrap == "NO_WRAP")
      in_.warn(
          "fsdp_auto_wrap_policy is not set: the whole model is gathered at once; the plan gathers layer by layer, "
          "so that the run needs far more memory than the plan");
    in_.note_default("fsdp_config", "gradients in FP32 shards", "gradients.stored");
    in_.not_modelled({"fsdp_config.fsdp_transformer_layer_cls_to_wrap", "fsdp_config.fsdp_min_num_params"},
                     "what is gathered in one piece; the plan gathers layer by layer");
    in_.not_modelled({"fsdp_config.fsdp_backward_prefetch", "fsdp_config.fsdp_backward_prefetch_policy",
                      "fsdp_config.fsdp_forward_prefetch"},
                     "when the next piece is gathered; the plan gathers one layer ahead");
    in_.ignore({"fsdp_config.fsdp_cpu_ram_efficient_loading", "fsdp_config.fsdp_state_dict_type",
                "fsdp_config.fsdp_sync_module_states", "fsdp_config.fsdp_use_orig_params"},
               "loading and saving");
  }

  /// fsdp_sharding_strategy: a name or its number.
  Strategy first_version() {
    in_.ignore({"fsdp_config.fsdp_reshard_after_forward"}, "of FSDP 2; fsdp_version is 1");
    const std::string given = in_.text_or({"fsdp_config.fsdp_sharding_strategy"}, "parallel.zero", "FULL_SHARD");
    for (std::size_t i = 0; i < kStrategies.size(); ++i)
      if (given == kStrategies[i].name || given == std::to_string(i + 1)) return kStrategies[i];
    in_.wrong("fsdp_config.fsdp_sharding_strategy",
              fmt::format("fsdp_sharding_strategy {} is neither 1 to 5 nor one of FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, "
                          "HYBRID_SHARD, HYBRID_SHARD_ZERO2",
                          given));
    return kStrategies[0];
  }

  /// fsdp_reshard_after_forward: true, false, or a strategy's name from the time of FSDP 1.
  Strategy second_version() {
    in_.ignore({"fsdp_config.fsdp_sharding_strategy"}, "of FSDP 1; fsdp_version is 2");
    const std::string given = in_.text_or({"fsdp_config.fsdp_reshard_after_forward"}, "parallel.zero", "true");
    for (const Strategy& strategy : kStrategies)
      if (given == strategy.name) return strategy;
    if (given == "true" || given == "True" || given == "yes") return {"", 3, false};
    if (given == "false" || given == "False" || given == "no") return {"", 2, false};
    in_.wrong("fsdp_config.fsdp_reshard_after_forward",
              fmt::format("fsdp_reshard_after_forward {} is neither true nor false", given));
    return kStrategies[0];
  }

  void read_deepspeed_part() {
    const std::string group = "deepspeed_config.";
    if (const SourceField* file = in_.find(group + "deepspeed_config_file"))
      in_.not_understood(file->key,
                         fmt::format("the DeepSpeed settings are in that file: reckon import {}", file->value.text));
    const std::int64_t zero = in_.count_or({group + "zero_stage"}, "parallel.zero", 2);
    if (zero < 0 || zero > 3) in_.wrong(group + "zero_stage", fmt::format("zero_stage {} is not 0, 1, 2 or 3", zero));
    in_.set("parallel.zero", zero);
    accumulation_ = in_.count_or({group + "gradient_accumulation_steps"}, "batch.global_batch", 1);
    if (const auto clip = in_.number({group + "gradient_clipping"}, "optimizer.clip_gradient_norm"))
      in_.set("optimizer.clip_gradient_norm", *clip);
    for (const char* device : {"offload_optimizer_device", "offload_param_device"}) {
      const SourceField* field = in_.find(group + device);
      if (field == nullptr) continue;
      if (field->value.text == "none") in_.ignore({field->key}, "not offloaded");
      else in_.not_understood(field->key, "offloading is not modelled: the plan keeps these states on the device");
    }
    in_.ignore({group + "zero3_init_flag", group + "zero3_save_16bit_model", group + "deepspeed_multinode_launcher",
                group + "deepspeed_hostfile", group + "deepspeed_moe_layer_cls_names"},
               "loading, saving and launching");
  }

  void read_megatron_part() {
    const std::string group = "megatron_lm_config.megatron_lm_";
    tensor_ = std::max<std::int64_t>(1, in_.count_or({group + "tp_degree"}, "parallel.tensor", 1));
    pipeline_ = std::max<std::int64_t>(1, in_.count_or({group + "pp_degree"}, "parallel.pipeline", 1));
    in_.set("parallel.sequence",
            in_.flag({group + "sequence_parallelism"}, "parallel.sequence").value_or(false) && tensor_ > 1);
    in_.set("parallel.zero",
            std::int64_t{in_.flag({group + "use_distributed_optimizer"}, "parallel.zero").value_or(false) ? 1 : 0});
    const bool recompute = in_.flag({group + "recompute_activations"}, "activations.recompute").value_or(false);
    in_.set("activations.recompute", std::string_view(recompute ? "selective" : "none"));
    accumulation_ = in_.count_or({group + "num_micro_batches"}, "batch.global_batch", 1);
    if (const auto clip = in_.number({group + "gradient_clipping"}, "optimizer.clip_gradient_norm"))
      in_.set("optimizer.clip_gradient_norm", *clip);
  }

  void set_degrees() {
    const std::string group = "parallelism_config.parallelism_config_";
    tensor_ *= std::max<std::int64_t>(1, in_.count({group + "tp_size"}, "parallel.tensor").value_or(1));
    const std::int64_t ring = std::max<std::int64_t>(1, in_.count({group + "cp_size"}, "parallel.ring").value_or(1));
    if (const auto shard = in_.count({group + "dp_shard_size"}, "parallel.zero_group"); shard && *shard > 1)
      in_.set("parallel.zero_group", *shard * ring);
    in_.count({group + "dp_replicate_size"}, "parallel.data");
    in_.ignore_below(group, "how the groups talk");
    std::int64_t others = 1;
    for (const std::int64_t degree : {tensor_, pipeline_, ring})
      others = degree > 1 << 16 || others > 1 << 20 ? 1 << 20 : others * degree;
    if (world_ % others != 0)
      in_.contradiction("num_processes",
                        fmt::format("{} processes are no multiple of tensor x pipeline x context = {} x {} x {}",
                                    world_, tensor_, pipeline_, ring));
    const std::int64_t data = std::max<std::int64_t>(1, world_ / others);
    if (tensor_ > 1) in_.set("parallel.tensor", tensor_);
    if (pipeline_ > 1) in_.set("parallel.pipeline", pipeline_);
    if (ring > 1) in_.set("parallel.ring", ring);
    in_.set("parallel.data", data);
    accumulation_ *=
        std::max<std::int64_t>(1, in_.count({"gradient_accumulation_steps"}, "batch.global_batch").value_or(1));
    in_.set("batch.micro_batch", std::int64_t{1});
    in_.set("batch.global_batch", data * std::max<std::int64_t>(1, std::min<std::int64_t>(accumulation_, 1 << 20)));
    in_.assume("batch.micro_batch", "1",
               "the training script decides; give batch.micro_batch=N and batch.global_batch=N");
  }

  void ignore_the_rest() {
    in_.ignore({"compute_environment",
                "debug",
                "downcast_bf16",
                "machine_rank",
                "main_process_ip",
                "main_process_port",
                "main_training_function",
                "rdzv_backend",
                "rdzv_endpoint",
                "same_network",
                "tpu_env",
                "tpu_use_cluster",
                "tpu_use_sudo",
                "tpu_name",
                "tpu_zone",
                "gpu_ids",
                "enable_cpu_affinity",
                "deepspeed_hostfile",
                "fsdp",
                "commands",
                "command_file"},
               "how processes are started");
    in_.ignore_below("ipex_config", "kernels of CPUs");
    in_.ignore_below("mpirun_config", "how processes are started");
    in_.not_modelled_below("dynamo_config", "compiled kernels are faster and keep less; see kernels.activation");
    if (in_.flag({"use_cpu"}, "hardware").value_or(false))
      in_.warn(fmt::format("{}: give hardware=local or another CPU", in_.called("use_cpu")));
    if (kind_ != "FSDP") in_.ignore_below("fsdp_config", "distributed_type is not FSDP");
    if (kind_ != "DEEPSPEED") in_.ignore_below("deepspeed_config", "distributed_type is not DEEPSPEED");
    if (kind_ != "MEGATRON_LM") in_.ignore_below("megatron_lm_config", "distributed_type is not MEGATRON_LM");
  }

  const ImportOptions& options_;
  SourceFields& in_;
  std::string kind_;
  std::int64_t nodes_ = 1, world_ = 1, tensor_ = 1, pipeline_ = 1, accumulation_ = 1;
};

}  // namespace

void read_accelerate(ForeignReading reading) {
  AccelerateReader(reading).read();
}

}  // namespace reckon
