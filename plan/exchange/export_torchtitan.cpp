// The inverse of read_torchtitan.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "plan/choices.h"
#include "plan/exchange/export_plan.h"
#include "plan/exchange/torchtitan_flavors.h"
#include "plan/parse_quantity.h"

namespace reckon {

namespace {

class TorchTitanWriter {
 public:
  explicit TorchTitanWriter(const Plan& plan) : plan_(plan) {}

  ForeignFile write() {
    write_model();
    write_optimizer();
    write_training();
    write_parallelism();
    write_recomputation();
    text_ += fmt::format("\n[compile]\nenable = {}\n", plan_.kernels.loss == LossKernel::fused);
    const auto more = keys_without_counterpart(plan_,
                                               {"reckon",
                                                "nodes",
                                                "method",
                                                "batch",
                                                "parallel.data",
                                                "parallel.pipeline",
                                                "parallel.tensor",
                                                "parallel.sequence",
                                                "parallel.ring",
                                                "parallel.ulysses",
                                                "parallel.expert",
                                                "parallel.zero",
                                                "parallel.schedule",
                                                "parallel.chunks",
                                                "documents.placement",
                                                "precision.compute",
                                                "kernels.loss",
                                                "kernels.activation",
                                                "activations.recompute",
                                                "gradients.stored",
                                                "gradients.wire",
                                                "optimizer.kind",
                                                "optimizer.learning_rate",
                                                "optimizer.beta",
                                                "optimizer.epsilon",
                                                "optimizer.weight_decay",
                                                "optimizer.warmup_steps",
                                                "optimizer.clip",
                                                "train",
                                                "sim",
                                                "memory.limit"},
                                               "TorchTitan's file");
    lost_.insert(lost_.end(), more.begin(), more.end());
    return {std::move(text_), std::move(lost_)};
  }

 private:
  void lose(std::string sentence) { lost_.push_back(std::move(sentence)); }
  template <class Value>
  void add(std::string_view key, const Value& value) {
    text_ += fmt::format("{} = {}\n", key, value);
  }
  /// TOML wants digits on both sides of the point, and in 1e-08 none at all.
  void add(std::string_view key, double value) {
    std::string number = write_number(value);
    if (number.find_first_of(".e") == std::string::npos) number += ".0";
    text_ += fmt::format("{} = {}\n", key, number);
  }

  void write_model() {
    text_ = "# Written by reckon export.\n[model]\n";
    const auto found = std::find_if(std::begin(kTorchTitanFlavors), std::end(kTorchTitanFlavors),
                                    [&](const TorchTitanFlavor& one) { return one.model == plan_.model.name; });
    if (found != std::end(kTorchTitanFlavors)) {
      text_ += fmt::format("name = \"{}\"\nflavor = \"{}\"\n", found->name, found->flavor);
    } else {
      text_ += "name = \"llama3\"\nflavor = \"debugmodel\"\n";
      if (plan_.model.name != kTorchTitanDebugModel)
        lose(fmt::format("model {} is no flavor of TorchTitan: debugmodel stands in its place", plan_.model.name));
    }
    if (payload_bits(plan_.precision.compute) == 8) text_ += "converters = [\"float8\"]\n";
  }

  void write_optimizer() {
    const OptimizerSpec& optimizer = plan_.optimizer;
    text_ += "\n[optimizer]\nname = \"AdamW\"\n";
    if (optimizer.kind != OptimizerKind::adamw) lose("optimizer.kind sgd has no counterpart in TorchTitan's file");
    add("lr", optimizer.learning_rate);
    add("beta1", optimizer.beta1);
    add("beta2", optimizer.beta2);
    add("eps", optimizer.epsilon);
    add("weight_decay", optimizer.weight_decay);
    text_ += "\n[lr_scheduler]\n";
    add("warmup_steps", optimizer.warmup_steps);
  }

  void write_training() {
    const bool pipeline = plan_.parallel.pipeline > 1;
    const std::int64_t local = pipeline ? plan_.batch.global_batch / plan_.parallel.data : plan_.batch.micro_batch;
    text_ += "\n[training]\n";
    add("local_batch_size", local);
    add("global_batch_size", plan_.batch.global_batch);
    add("seq_len", plan_.batch.sequence_length);
    add("max_norm", plan_.optimizer.clip_gradient_norm);
    add("steps", plan_.train.steps);
    add("seed", plan_.train.seed);
    add("mixed_precision_param", plan_.precision.compute == NumberFormat::fp32 ? "\"float32\"" : "\"bfloat16\"");
    add("mixed_precision_reduce", plan_.gradients.wire == NumberFormat::bf16 ? "\"bfloat16\"" : "\"float32\"");
    if (const LossKernel loss = plan_.kernels.loss; loss != LossKernel::fused && loss != LossKernel::fp32_softmax)
      lose(
          fmt::format("kernels.loss {} has no counterpart: TorchTitan compiles the loss or keeps FP32 logits and their "
                      "softmax; the latter is written",
                      name_of(loss)));
    if (plan_.gradients.stored != NumberFormat::fp32)
      lose(fmt::format("gradients.stored {} has no counterpart: TorchTitan keeps FP32 gradients",
                       name_of(plan_.gradients.stored)));
  }

  void write_parallelism() {
    const ParallelSpec& parallel = plan_.parallel;
    const std::int64_t context = plan_.context();
    const std::int64_t group = parallel.zero_group > 0 ? parallel.zero_group / context : parallel.data;
    const std::int64_t shard = parallel.zero < 2 ? 1 : std::max<std::int64_t>(1, group);
    if (parallel.zero == 1)
      lose("parallel.zero 1 has no counterpart: TorchTitan shards states with gradients, or replicates them");
    text_ += "\n[parallelism]\n";
    add("data_parallel_replicate_degree", parallel.data / shard);
    add("data_parallel_shard_degree", shard);
    add("fsdp_reshard_after_forward", parallel.zero == 2 ? "\"never\"" : "\"always\"");
    add("tensor_parallel_degree", parallel.tensor);
    add("context_parallel_degree", context);
    if (parallel.ulysses > 1)
      lose(fmt::format("parallel.ulysses {} is written as context parallelism by a ring", parallel.ulysses));
    add("expert_parallel_degree", parallel.expert);
    add("pipeline_parallel_degree", parallel.pipeline);
    if (parallel.pipeline == 1) return;
    add("pipeline_parallel_schedule", parallel.schedule == ScheduleKind::gpipe         ? "\"GPipe\""
                                      : parallel.schedule == ScheduleKind::interleaved ? "\"Interleaved1F1B\""
                                                                                       : "\"1F1B\"");
    add("pipeline_parallel_microbatch_size", plan_.batch.micro_batch);
    if (parallel.chunks > 2) add("pipeline_parallel_layers_per_stage", plan_.model.layers / plan_.virtual_stages());
  }

  void write_recomputation() {
    text_ += "\n[activation_checkpoint]\n";
    switch (plan_.activations.recompute) {
      case Recompute::none: return add("mode", "\"none\"");
      case Recompute::selective:
        lose("activations.recompute selective (attention alone) is written as TorchTitan's op selection");
        [[fallthrough]];
      case Recompute::elementwise: text_ += "mode = \"selective\"\nselective_ac_option = \"op\"\n"; return;
      case Recompute::full: break;
    }
    const std::vector<std::int64_t>& listed = plan_.activations.recompute_layers;
    const std::int64_t stage = (plan_.model.layers + plan_.parallel.pipeline - 1) / plan_.parallel.pipeline;
    const std::int64_t layers =
        listed.empty() ? stage : std::min(stage, *std::max_element(listed.begin(), listed.end()));
    if (layers == 0) return add("mode", "\"none\"");
    const std::int64_t period = stage / layers;
    if (period <= 1) return add("mode", "\"full\"");
    text_ += fmt::format("mode = \"selective\"\nselective_ac_option = \"{}\"\n", std::min<std::int64_t>(period, 9));
    if (period > 9 || stage / period != layers)
      lose(fmt::format("activations.recompute_layers {} of {}: TorchTitan takes every n-th layer", layers, stage));
  }

  const Plan& plan_;
  std::string text_;
  std::vector<std::string> lost_;
};

}  // namespace

ForeignFile export_torchtitan(const Plan& plan) {
  return TorchTitanWriter(plan).write();
}

}  // namespace reckon
