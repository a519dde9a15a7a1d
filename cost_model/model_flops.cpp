#include "cost_model/model_flops.h"

#include "plan/parameters.h"
#include "plan/stage_sections.h"

namespace reckon {

namespace {

double real(std::int64_t value) {
  return static_cast<double>(value);
}

/// Weights that a token is multiplied with, without the looked-up tables.
double multiplied_weights(const ModelSpec& model) {
  const double table = model.tied_head ? 0.0 : real(model.vocabulary * model.hidden);
  return real(count_active_parameters(model)) - table - real(model.position_rows * model.hidden);
}

double attention_width(const ModelSpec& model) {
  const double key =
      model.is_mla() ? real(model.mla.qk_nope_head_dim + model.mla.qk_rope_head_dim) : real(model.head_dim);
  const double value = model.is_mla() ? real(model.mla.v_head_dim) : real(model.head_dim);
  return real(model.heads) * (key + value);
}

double tokens(const Plan& plan) {
  return real(plan.batch.global_batch) * real(plan.batch.sequence_length);
}

/// Forward of all layers' attention, per row.
double attention_flops_per_row(const Plan& plan, const AttentionWork& work) {
  return 2.0 * work.pairs_per_row * attention_width(plan.model) * real(plan.model.layers);
}

}  // namespace

Flops model_flops(const Plan& plan, const AttentionWork& work) {
  const double products = 2.0 * multiplied_weights(plan.model) * tokens(plan);
  return Flops(3.0 * (products + attention_flops_per_row(plan, work) * real(plan.batch.global_batch)));
}

Flops recomputed_flops(const Plan& plan, const AttentionWork& work) {
  const Recompute mode = plan.activations.recompute;
  if (mode == Recompute::none || mode == Recompute::elementwise) return Flops(0.0);
  // Selective recomputation drops the scores, which fused attention never stores.
  if (mode == Recompute::selective && plan.kernels.attention != AttentionKernel::unfused) return Flops(0.0);
  double layers = 0;
  for (std::int64_t stage = 0; stage < plan.parallel.pipeline; ++stage) layers += real(recomputed_layers(plan, stage));
  const double attention = attention_flops_per_row(plan, work) * real(plan.batch.global_batch);
  const double head = real(plan.model.vocabulary * plan.model.hidden);
  const double products = mode == Recompute::full ? 2.0 * (multiplied_weights(plan.model) - head) * tokens(plan) : 0.0;
  return Flops((products + attention) * layers / real(plan.model.layers));
}

}  // namespace reckon
