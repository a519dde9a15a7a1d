// The inverse of read_deepspeed.cpp.
#include <fmt/format.h>

#include "plan/choices.h"
#include "plan/exchange/export_plan.h"
#include "plan/parse_quantity.h"

namespace reckon {

namespace {

const char* schedule_of(LearningRateSchedule schedule) {
  switch (schedule) {
    case LearningRateSchedule::linear: return "WarmupDecayLR";
    case LearningRateSchedule::cosine: return "WarmupCosineLR";
    case LearningRateSchedule::constant: break;
  }
  return "WarmupLR";
}

std::string optimizer_lines(const OptimizerSpec& optimizer, const TrainSpec& train) {
  std::string text =
      fmt::format("  \"optimizer\": {{\"type\": \"{}\", \"params\": {{\"lr\": {}",
                  optimizer.kind == OptimizerKind::sgd ? "SGD" : "AdamW", write_number(optimizer.learning_rate));
  if (optimizer.kind == OptimizerKind::adamw)
    text += fmt::format(", \"betas\": [{}, {}], \"eps\": {}, \"weight_decay\": {}", write_number(optimizer.beta1),
                        write_number(optimizer.beta2), write_number(optimizer.epsilon),
                        write_number(optimizer.weight_decay));
  text += "}},\n";
  text += fmt::format("  \"scheduler\": {{\"type\": \"{}\", \"params\": {{\"warmup_num_steps\": {}",
                      schedule_of(optimizer.schedule), optimizer.warmup_steps);
  if (optimizer.schedule != LearningRateSchedule::constant)
    text += fmt::format(", \"total_num_steps\": {}", train.steps);
  return text + "}},\n";
}

std::string precision_lines(const Plan& plan, std::vector<std::string>& lost) {
  const NumberFormat compute = plan.precision.compute;
  const bool half = compute == NumberFormat::fp16;
  if (compute != NumberFormat::fp16 && compute != NumberFormat::bf16 && compute != NumberFormat::fp32)
    lost.push_back(
        fmt::format("precision.compute {} is written as bf16: DeepSpeed's file knows fp16 and bf16", name_of(compute)));
  std::string text = fmt::format("  \"fp16\": {{\"enabled\": {}}},\n  \"bf16\": {{\"enabled\": {}}},\n", half,
                                 !half && compute != NumberFormat::fp32);
  const auto add = [&](const char* before, NumberFormat format, const char* after, const char* key) {
    if (format == NumberFormat::fp32 || format == NumberFormat::fp16 || format == NumberFormat::bf16)
      text += fmt::format("  {}\"{}\"{},\n", before, name_of(format), after);
    else lost.push_back(fmt::format("{} {} has no counterpart in DeepSpeed's file", key, name_of(format)));
  };
  add("\"data_types\": {\"grad_accum_dtype\": ", plan.gradients.stored, "}", "gradients.stored");
  if (plan.gradients.wire != plan.gradients.stored)
    add("\"communication_data_type\": ", plan.gradients.wire, "", "gradients.wire");
  return text;
}

}  // namespace

ForeignFile export_deepspeed(const Plan& plan) {
  ForeignFile file;
  const ParallelSpec& parallel = plan.parallel;
  std::string& text = file.text;
  text = "{\n";
  text += fmt::format("  \"train_batch_size\": {},\n  \"train_micro_batch_size_per_gpu\": {},\n",
                      plan.batch.global_batch, plan.batch.micro_batch);
  text += fmt::format("  \"gradient_accumulation_steps\": {},\n", plan.micro_batches());
  text += fmt::format("  \"gradient_clipping\": {},\n", write_number(plan.optimizer.clip_gradient_norm));
  if (parallel.ulysses > 1) text += fmt::format("  \"sequence_parallel_size\": {},\n", parallel.ulysses);
  text += precision_lines(plan, file.lost);
  text += optimizer_lines(plan.optimizer, plan.train);
  text += fmt::format("  \"zero_optimization\": {{\n    \"stage\": {},\n", parallel.zero);
  const bool hybrid =
      parallel.zero > 0 && parallel.zero_group > 0 && parallel.zero_group != parallel.data * plan.context();
  if (hybrid) text += fmt::format("    \"mics_shard_size\": {},\n", parallel.zero_group);
  const std::int64_t width = plan.precision.compute == NumberFormat::fp32 ? 4 : 2;
  text += fmt::format("    \"reduce_bucket_size\": {}\n  }}\n}}\n", plan.gradients.bucket.value / width);
  for (const auto& [degree, key] : {std::pair{parallel.tensor, "parallel.tensor"},
                                    {parallel.pipeline, "parallel.pipeline"},
                                    {parallel.ring, "parallel.ring"},
                                    {parallel.expert, "parallel.expert"}})
    if (degree > 1)
      file.lost.push_back(fmt::format("{} {} belongs to the training script, not to DeepSpeed's file", key, degree));
  const auto more = keys_without_counterpart(plan,
                                             {"reckon",
                                              "nodes",
                                              "method",
                                              "batch",
                                              "parallel.data",
                                              "parallel.pipeline",
                                              "parallel.tensor",
                                              "parallel.ulysses",
                                              "parallel.ring",
                                              "parallel.expert",
                                              "parallel.zero",
                                              "precision.compute",
                                              "gradients.stored",
                                              "gradients.wire",
                                              "gradients.bucket",
                                              "optimizer.kind",
                                              "optimizer.learning_rate",
                                              "optimizer.beta",
                                              "optimizer.epsilon",
                                              "optimizer.weight_decay",
                                              "optimizer.warmup_steps",
                                              "optimizer.schedule",
                                              "optimizer.clip",
                                              "train",
                                              "sim",
                                              "memory.limit"},
                                             "DeepSpeed's file");
  file.lost.insert(file.lost.end(), more.begin(), more.end());
  return file;
}

}  // namespace reckon
