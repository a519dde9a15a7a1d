// DeepSpeed's JSON (deepspeed.ai/docs/config-json; the defaults are those of that page). Fields that say "auto" are
// filled in by the trainer and stay open.
#include <fmt/format.h>

#include "plan/exchange/foreign_reader.h"
#include "plan/yaml_reader.h"

namespace reckon {

namespace {

constexpr std::string_view kFetching =
    "ZeRO-3 holds and fetches ahead so many gathered weights; the plan gathers one layer ahead and frees it at once";

class DeepSpeedReader {
 public:
  explicit DeepSpeedReader(ForeignReading reading) : options_(reading.options), in_(reading.fields) {}

  void read() {
    read_precision();
    read_sharding();
    read_world_and_batch();
    read_gradients();
    read_optimizer();
    read_offload();
    ignore_the_rest();
    in_.missing("model");
    in_.missing("batch.sequence_length");
  }

 private:
  void read_precision() {
    const bool half = on("fp16.enabled"), brain = on("bf16.enabled") || on("bfloat16.enabled");
    if (half && brain)
      in_.contradiction("fp16.enabled", "fp16.enabled and bf16.enabled are both true; one is possible");
    const bool open = in_.is_auto("fp16.enabled") || in_.is_auto("bf16.enabled");
    compute_ = half ? "fp16" : brain || open ? "bf16" : "fp32";
    if (!half && !brain && open) in_.assume("precision.compute", "bf16", "\"auto\": the trainer decides");
    if (!half && !brain && !open) in_.note_default("fp16.enabled", "false", "precision.compute", "FP32");
    in_.set("precision.compute", std::string_view(compute_));
    in_.ignore_below("fp16.", "scaling of the loss");
    in_.ignore_below("bf16.", "scaling of the loss");
    in_.ignore_below("bfloat16.", "scaling of the loss");
  }

  bool on(std::string_view name) { return in_.flag({name}, "precision.compute").value_or(false); }

  void read_sharding() {
    zero_ = in_.count_or({"zero_optimization.stage"}, "parallel.zero", 0);
    if (zero_ < 0 || zero_ > 3)
      in_.wrong("zero_optimization.stage", fmt::format("zero_optimization.stage {} is not 0, 1, 2 or 3", zero_));
    in_.set("parallel.zero", zero_);
    if (const auto group = in_.count({"zero_optimization.mics_shard_size", "mics_shard_size"}, "parallel.zero_group"))
      if (*group > 0) in_.set("parallel.zero_group", *group);
    const std::string second_copy = "ZeRO++'s second copy of the parameters inside a node is not modelled";
    const SourceField* copies = in_.find("zero_optimization.zero_hpz_partition_size");
    if (copies != nullptr && copies->value.text == "1") in_.ignore({copies->key}, "1: no second copy");
    else in_.not_understood("zero_optimization.zero_hpz_partition_size", second_copy);
    in_.not_understood("zero_optimization.zero_quantized_weights", "the plan gathers parameters as they are stored");
    if (in_.flag({"zero_optimization.zero_quantized_gradients"}, "gradients.wire").value_or(false))
      in_.set("gradients.wire", std::string_view("int8"));
  }

  void read_world_and_batch() {
    const std::int64_t sequence = in_.count({"sequence_parallel_size"}, "parallel.ulysses").value_or(1);
    if (sequence > 1) in_.set("parallel.ulysses", sequence);
    BatchFields batch{"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"};
    batch.global = in_.count({"train_batch_size"}, "batch.global_batch").value_or(0);
    batch.micro = in_.count({"train_micro_batch_size_per_gpu"}, "batch.micro_batch").value_or(0);
    batch.accumulation = in_.count({"gradient_accumulation_steps"}, "batch.global_batch").value_or(0);
    const std::int64_t stated = options_.devices;
    if (sequence < 1 || (stated > 0 && stated % sequence != 0)) {
      return in_.contradiction("sequence_parallel_size",
                               fmt::format("sequence_parallel_size {} does not divide {} ranks", sequence, stated));
    }
    batch.replicas = stated / sequence;
    if (batch.replicas == 0 && batch.global > 0 && batch.micro > 0 && batch.accumulation > 0) {
      batch.replicas = from_batch(batch);
    } else if (batch.replicas == 0) {
      batch.replicas = 8;
      in_.assume("parallel.data", "8", "the file does not say how many ranks run; --devices N says");
    }
    if (batch.global == 0 && batch.micro == 0) return open_batch(batch);
    if (batch.accumulation == 0) {
      const bool follows = batch.global > 0 && batch.micro > 0;
      if (!follows) batch.accumulation = 1, in_.note_default("gradient_accumulation_steps", "1", "batch.global_batch");
    }
    set_batch(in_, batch);
    in_.set("parallel.data", batch.replicas);
  }

  /// train_batch_size = micro x accumulation x ranks gives the ranks.
  std::int64_t from_batch(const BatchFields& batch) {
    const std::int64_t rows = batch.micro * batch.accumulation;
    const bool even = batch.global % rows == 0;
    if (!even)
      in_.contradiction(
          "train_batch_size",
          fmt::format("{} is {}, but must be {} x {} x ranks = a multiple of {} x {} = {}",
                      in_.called("train_batch_size"), batch.global, in_.called("train_micro_batch_size_per_gpu"),
                      in_.called("gradient_accumulation_steps"), batch.micro, batch.accumulation, rows));
    const std::int64_t ranks = std::max<std::int64_t>(1, batch.global / rows);
    if (even)
      in_.assume("parallel.data", fmt::format("{}", ranks), "from train_batch_size = micro x accumulation x ranks");
    return ranks;
  }

  void open_batch(const BatchFields& batch) {
    in_.set("parallel.data", batch.replicas);
    in_.set("batch.micro_batch", std::int64_t{1});
    const std::int64_t accumulation = std::max<std::int64_t>(1, batch.accumulation);
    in_.set("batch.global_batch", batch.replicas * accumulation);
    in_.assume("batch.micro_batch", "1", "no batch size is a number in the file; give batch.micro_batch=N");
    in_.assume("batch.global_batch", fmt::format("{}", batch.replicas * accumulation),
               "micro batch x accumulation x ranks");
  }

  void read_gradients() {
    const bool sixteen = compute_ != "fp32";
    const std::string stored =
        in_.text({"data_types.grad_accum_dtype"}, "gradients.stored").value_or(sixteen ? compute_ : "fp32");
    if (!in_.has("data_types.grad_accum_dtype"))
      in_.note_default("data_types.grad_accum_dtype", stored, "gradients.stored",
                       "gradients stay in compute precision");
    set_format("data_types.grad_accum_dtype", "gradients.stored", stored);
    if (const auto wire = in_.text({"communication_data_type"}, "gradients.wire"))
      set_format("communication_data_type", "gradients.wire", *wire);
    const double width = sixteen ? 2 : 4;
    if (in_.is_auto("zero_optimization.reduce_bucket_size")) {
      in_.count({"zero_optimization.reduce_bucket_size"}, "gradients.bucket");
    } else {
      const std::int64_t elements =
          in_.count_or({"zero_optimization.reduce_bucket_size"}, "gradients.bucket", 500000000, "elements");
      if (elements > 0) in_.set("gradients.bucket", to_yaml(Bytes(elements * static_cast<std::int64_t>(width))));
    }
  }

  void set_format(std::string_view name, std::string_view plan_key, const std::string& format) {
    for (const auto& [theirs, ours] :
         {std::pair{"fp32", "fp32"}, {"bf16", "bf16"}, {"fp16", "fp16"}, {"bfp16", "bf16"}})
      if (format == theirs) return in_.set(plan_key, std::string_view(ours));
    in_.wrong(name, fmt::format("{} {} is not one of fp32, fp16, bf16", name, format));
  }

  void read_optimizer() {
    const auto kind = in_.text({"optimizer.type"}, "optimizer.kind");
    if (kind && *kind != "Adam" && *kind != "AdamW" && *kind != "SGD")
      in_.not_understood("optimizer.type", "the plan knows adamw and sgd; adamw is taken");
    in_.set("optimizer.kind", std::string_view(kind && *kind == "SGD" ? "sgd" : "adamw"));
    copy("optimizer.params.lr", "optimizer.learning_rate");
    copy("optimizer.params.eps", "optimizer.epsilon");
    copy("optimizer.params.weight_decay", "optimizer.weight_decay");
    read_betas();
    in_.ignore({"optimizer.params.torch_adam", "optimizer.params.adam_w_mode", "optimizer.params.bias_correction"},
               "which implementation of Adam");
    read_clipping();
    const std::string schedule = in_.text({"scheduler.type"}, "optimizer.schedule").value_or("");
    if (schedule == "WarmupDecayLR") in_.set("optimizer.schedule", std::string_view("linear"));
    if (schedule == "WarmupCosineLR") in_.set("optimizer.schedule", std::string_view("cosine"));
    if (const auto steps = in_.count({"scheduler.params.warmup_num_steps"}, "optimizer.warmup_steps"))
      in_.set("optimizer.warmup_steps", *steps);
    in_.ignore_below("scheduler.params.", "rate of the training, not of a step");
  }

  void read_clipping() {
    if (in_.is_auto("gradient_clipping")) {
      in_.fill_in("gradient_clipping", "optimizer.clip_gradient_norm", "1",
                  "Hugging Face's Trainer fills in its max_grad_norm, 1 unless it is set");
      return in_.set("optimizer.clip_gradient_norm", 1.0);
    }
    in_.set("optimizer.clip_gradient_norm",
            in_.number_or({"gradient_clipping"}, "optimizer.clip_gradient_norm", 0.0, "no clipping"));
  }

  void read_betas() {
    const SourceField* betas = in_.find("optimizer.params.betas");
    if (betas == nullptr) return;
    if (betas->value.text == "auto") return void(in_.text({"optimizer.params.betas"}, "optimizer.beta1"));
    in_.use(betas->key, "optimizer.beta1");
    if (betas->value.items.size() != 2) return in_.wrong(betas->key, "optimizer.params.betas needs two numbers");
    in_.set("optimizer.beta1", YamlValue::scalar(betas->value.items[0].text));
    in_.set("optimizer.beta2", YamlValue::scalar(betas->value.items[1].text));
  }

  void copy(std::string_view name, std::string_view plan_key) {
    if (const auto value = in_.number({name}, plan_key)) in_.set(plan_key, *value);
  }

  void read_offload() {
    for (const char* what : {"offload_optimizer", "offload_param"}) {
      const std::string name = fmt::format("zero_optimization.{}.device", what);
      const SourceField* device = in_.find(name);
      if (device == nullptr) continue;
      const std::string group = fmt::format("zero_optimization.{}.", what);
      if (device->value.text == "none") {
        in_.ignore_below(group, "not offloaded");
        continue;
      }
      in_.not_understood(name, fmt::format("offloading to {} is not modelled: the plan keeps these states on the "
                                           "device, so it needs more memory and is faster",
                                           device->value.text));
      in_.not_modelled_below(group, "how fast offloading copies");
    }
    in_.not_understood("zero_optimization.cpu_offload",
                       "offloading is not modelled: the plan keeps the states on the device");
    for (const char* name : {"max_live_parameters", "max_reuse_distance", "prefetch_bucket_size",
                             "param_persistence_threshold", "gather_16bit_weights_on_model_save"}) {
      const std::string bare = std::string("zero_optimization.") + name;
      if (in_.has(bare))
        in_.warn(fmt::format("{} lacks the prefix stage3_ that DeepSpeed asks for: it may have no effect",
                             in_.called(bare)));
    }
    in_.not_modelled({"zero_optimization.max_live_parameters", "zero_optimization.max_reuse_distance",
                      "zero_optimization.prefetch_bucket_size", "zero_optimization.param_persistence_threshold"},
                     kFetching);
    const bool partitions = in_.flag({"activation_checkpointing.partition_activations"}, "activations").value_or(false);
    if (partitions)
      in_.not_understood("activation_checkpointing.partition_activations",
                         "kept inputs are not spread over ranks in the plan");
    if (in_.flag({"activation_checkpointing.cpu_checkpointing"}, "activations").value_or(false))
      in_.not_understood("activation_checkpointing.cpu_checkpointing", "offloading of activations is not modelled");
    if (in_.has("activation_checkpointing.number_checkpoints") || partitions)
      in_.warn(
          "activation_checkpointing configures recomputation but does not start it: set activations.recompute=full "
          "if the model's code does");
    in_.not_modelled({"activation_checkpointing.contiguous_memory_optimization"},
                     "kept inputs are copied into one buffer, which the plan does not hold");
    in_.not_modelled({"activation_checkpointing.synchronize_checkpoint_boundary"}, "waits between layers");
    in_.ignore_below("activation_checkpointing", "configures recomputation, which the model's code starts");
  }

  void ignore_the_rest() {
    read_how_zero_moves();
    in_.ignore({"zero_optimization.stage3_gather_16bit_weights_on_model_save",
                "zero_optimization.stage3_gather_fp16_weights_on_model_save",
                "zero_optimization.gather_16bit_weights_on_model_save", "zero_optimization.ignore_unused_parameters",
                "zero_optimization.load_from_fp32_weights", "zero_optimization.elastic_checkpoint",
                "zero_optimization.legacy_stage1"},
               "saving and loading");
    in_.ignore(
        {"zero_allow_untested_optimizer", "zero_force_ds_cpu_optimizer", "wall_clock_breakdown", "steps_per_print",
         "dump_state", "prescale_gradients", "gradient_predivide_factor", "memory_breakdown", "use_node_local_storage"},
        "logging and how gradients are averaged");
    if (in_.flag({"amp.enabled"}, "precision.compute").value_or(false))
      in_.not_understood("amp.enabled", "Apex's mixed precision; the plan computes as fp16 and bf16 say");
    in_.ignore_below("amp.", "Apex's mixed precision is off");
    in_.not_modelled({"sparse_gradients", "disable_allgather", "seq_parallel_communication_data_type"},
                     "other bytes on the network than the plan counts");
    for (const char* group : {"tensorboard", "wandb", "csv_monitor", "comet", "flops_profiler", "comms_logger",
                              "checkpoint", "aio", "elasticity", "autotuning", "data_efficiency", "comms_config"})
      in_.ignore_below(group, "logging, checkpoints and tuning");
    in_.not_understood("pipeline.stages", "give parallel.pipeline=N");
  }

  void read_how_zero_moves() {
    in_.not_modelled({"zero_optimization.overlap_comm"},
                     "the plan always hides what fits of the reduction behind the backward");
    in_.not_modelled(
        {"zero_optimization.stage3_max_live_parameters", "zero_optimization.stage3_max_reuse_distance",
         "zero_optimization.stage3_prefetch_bucket_size", "zero_optimization.stage3_param_persistence_threshold"},
        kFetching);
    in_.not_modelled({"zero_optimization.sub_group_size"},
                     "the update goes through pieces of so many weights; the plan's update is one");
    in_.not_modelled({"zero_optimization.contiguous_gradients", "zero_optimization.reduce_scatter",
                      "zero_optimization.allgather_partitions", "zero_optimization.allgather_bucket_size",
                      "zero_optimization.round_robin_gradients", "zero_optimization.mics_hierarchical_params_gather"},
                     "sizes and order of ZeRO's messages and their buffers; the plan has gradients.bucket only");
    in_.not_modelled({"zero_optimization.memory_efficient_linear"}, "what a linear layer keeps for backward");
    in_.not_modelled_below("zero_optimization.stage3_", kFetching);
  }

  const ImportOptions& options_;
  SourceFields& in_;
  std::string compute_ = "bf16";
  std::int64_t zero_ = 0;
};

}  // namespace

void read_deepspeed(ForeignReading reading) {
  DeepSpeedReader(reading).read();
}

}  // namespace reckon
