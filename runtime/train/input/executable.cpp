#include "runtime/train/input/executable.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "plan/errors.h"

namespace reckon {
namespace {

class Refusals {
 public:
  void add_if(bool refused, const std::string& key, const std::string& sentence) {
    if (refused) list_.push_back({sentence, {}, 0, 0, key});
  }
  void throw_if_any() const {
    if (!list_.empty()) throw ConfigError(list_);
  }

 private:
  std::vector<Diagnostic> list_;
};

void refuse_model(const ModelSpec& model, std::int64_t length, Refusals& refuse) {
  const std::string later = " cannot be executed yet; prediction and simulation work";
  refuse.add_if(model.is_moe(), "model", "a mixture of experts" + later);
  refuse.add_if(model.is_mla(), "model", "latent attention" + later);
  refuse.add_if(model.position == Position::alibi, "model", "ALiBi positions" + later);
  refuse.add_if(model.qk_norm_full, "model", "norms over the whole width of queries and keys (qk_norm_full)" + later);
  refuse.add_if(model.attention_sinks, "model", "attention sinks" + later);
  const bool known_scaling = model.rope_scaling == "linear" || model.rope_scaling == "llama3";
  refuse.add_if(!model.rope_scaling.empty() && !known_scaling, "model",
                fmt::format("rotary frequencies scaled by {} (rope_scaling){}", model.rope_scaling, later));
  refuse.add_if(model.attention_softcap > 0, "model", "capped attention scores (attention_softcap)" + later);
  refuse.add_if(model.logit_softcap > 0, "model", "capped logits (logit_softcap)" + later);
  refuse.add_if(model.sliding_window > 0 && model.sliding_window < length, "model",
                fmt::format("a sliding window of {} tokens in rows of {}{}", model.sliding_window, length, later));
}

}  // namespace

Bytes allocation_limit(const Plan& plan) {
  if (plan.memory.limit) return *plan.memory.limit;
  const Bytes memory = plan.hardware.device.memory, context = plan.hardware.context;
  if (memory > context || context == Bytes(0)) return memory - context;
  throw ConfigError({{fmt::format("the device has {} bytes, of which the context takes {}; give memory.limit",
                                  memory.value, context.value),
                      {},
                      0,
                      0,
                      "memory.limit"}});
}

void require_executable(const Plan& plan) {
  Refusals refuse;
  refuse_model(plan.model, plan.batch.sequence_length, refuse);
  const NumberFormat compute = plan.precision.compute;
  refuse.add_if(compute != NumberFormat::fp32 && compute != NumberFormat::bf16, "precision.compute",
                fmt::format("the runtime computes in fp32 and bf16, not in {}", name_of(compute)));
  refuse.add_if(plan.precision.master != NumberFormat::fp32, "precision.master",
                fmt::format("the runtime keeps fp32 master weights, not {}", name_of(plan.precision.master)));
  refuse.add_if(plan.parallel.chunks > 1 && plan.parallel.pipeline == 1, "parallel.chunks",
                "several chunks on one pipeline stage cannot be executed; use 1");
  refuse.add_if(plan.kernels.attention != AttentionKernel::flash, "kernels.attention",
                "the runtime has flash attention only");
  refuse.add_if(plan.kernels.loss != LossKernel::fused, "kernels.loss", "the runtime has the fused loss only");
  refuse.add_if(plan.kernels.activation != ActivationKernel::fused, "kernels.activation",
                "the runtime has fused activations only");
  refuse.add_if(plan.kernels.dropout, "kernels.dropout", "the runtime has no dropout");
  refuse.add_if(plan.kernels.pending_collectives > 0, "kernels.pending_collectives",
                "the runtime frees what a collective read at once; use 0");
  refuse.add_if(plan.memory.workspace.value > 0, "memory.workspace",
                "the runtime's libraries hold no workspace in its allocator; use 0");
  refuse.add_if(plan.gradients.bucket_copies, "gradients.bucket_copies",
                "the runtime reduces the stored gradients themselves; use false");
  const auto refuse_gradient_format = [&](NumberFormat format, const char* key, const char* verb) {
    refuse.add_if(format != NumberFormat::fp32 && format != NumberFormat::bf16 && !is_block_scaled(format), key,
                  fmt::format("the runtime {} gradients in fp32, bf16 or a block-scaled format, not in {}", verb,
                              name_of(format)));
  };
  refuse_gradient_format(plan.gradients.stored, "gradients.stored", "keeps");
  refuse_gradient_format(plan.gradients.wire, "gradients.wire", "reduces");
  refuse.add_if(plan.gradients.reduce == GradientReduce::all_to_all_sum && !is_block_scaled(plan.gradients.wire),
                "gradients.reduce",
                fmt::format("all_to_all_sum is for block-scaled formats; in {} use all_reduce, which adds in FP32 here",
                            name_of(plan.gradients.wire)));
  refuse.add_if(plan.optimizer.states != NumberFormat::fp32 && plan.optimizer.states != NumberFormat::int8,
                "optimizer.states",
                fmt::format("the runtime keeps fp32 or int8 optimizer states, not {}", name_of(plan.optimizer.states)));
  refuse.add_if(plan.train.tokenizer != "bytes" && plan.train.data.empty(), "train.tokenizer",
                "without train.data there is no text to cut into tokens; name some, or leave the tokenizer out");
  refuse.throw_if_any();
  allocation_limit(plan);
}

}  // namespace reckon
