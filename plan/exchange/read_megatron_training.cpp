// What Megatron-LM arguments say of formats, kernels and the optimizer, and what they say that changes nothing.
#include <fmt/format.h>

#include <algorithm>

#include "plan/exchange/megatron_parts.h"
#include "plan/exchange/megatron_without_key.h"
#include "plan/yaml_reader.h"

namespace reckon {

namespace {

class MegatronTrainingReader {
 public:
  MegatronTrainingReader(ForeignReading reading, std::int64_t replicas) : in_(reading.fields), replicas_(replicas) {}

  void read() {
    read_precision();
    read_kernels();
    read_optimizer();
    ignore_the_rest();
  }

 private:
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
    const std::string stored = half ? "bf16" : compute == "fp16" && !full ? "fp16" : "fp32";
    in_.set("gradients.stored", std::string_view(stored));
    if (const auto elements = in_.count({"--ddp-bucket-size"}, "gradients.bucket", "elements");
        elements && *elements > 0)
      in_.set("gradients.bucket", to_yaml(Bytes(*elements * (stored == "fp32" ? 4 : 2))));
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

  /// What Megatron-LM leaves exposed unless it is told, and the plan never does.
  void note_exposed_reduction() {
    const bool fully = in_.has("--use-megatron-fsdp") || in_.has("--use-custom-fsdp") || in_.has("--use-torch-fsdp2");
    if (replicas_ > 1 && !fully && !in_.has("--overlap-grad-reduce"))
      in_.note_default_not_modelled("--overlap-grad-reduce", "false",
                                    "gradients are reduced after the backward; the plan hides what fits behind it, so "
                                    "its step is shorter");
  }

  static void for_each_name(std::string_view names, const auto& visit) {
    for (std::size_t at = 0; at < names.size();) {
      const std::size_t end = std::min(names.find(' ', at), names.size());
      visit(names.substr(at, end - at));
      at = end + 1;
    }
  }

  void ignore_the_rest() {
    note_exposed_reduction();
    for (const ArgumentsWithoutKey& group : kNotModelledOfMegatron)
      for_each_name(group.names, [&](std::string_view name) { in_.not_modelled({name}, group.why); });
    for (const ArgumentsWithoutKey& group : kIgnoredByMegatronReader)
      for_each_name(group.names, [&](std::string_view name) { in_.ignore({name}, group.why); });
    in_.ignore_below("#SBATCH", "the batch system");
    in_.ignore_below("--inference", "inference");
    in_.ignore_below("--rl-", "reinforcement learning");
  }

  SourceFields& in_;
  std::int64_t replicas_;
};

}  // namespace

void read_megatron_training(ForeignReading reading, std::int64_t replicas) {
  MegatronTrainingReader(reading, replicas).read();
}

}  // namespace reckon
