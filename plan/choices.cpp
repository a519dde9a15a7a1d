#include "plan/choices.h"

namespace reckon {

std::span<const Choice<ScheduleKind>> choices(ScheduleKind) {
  static constexpr Choice<ScheduleKind> kAll[] = {{ScheduleKind::gpipe, "gpipe"},
                                                  {ScheduleKind::one_forward_one_backward, "1f1b"},
                                                  {ScheduleKind::interleaved, "interleaved"}};
  return kAll;
}

std::span<const Choice<Recompute>> choices(Recompute) {
  static constexpr Choice<Recompute> kAll[] = {{Recompute::none, "none"},
                                               {Recompute::elementwise, "elementwise"},
                                               {Recompute::selective, "selective"},
                                               {Recompute::full, "full"}};
  return kAll;
}

std::span<const Choice<Rows>> choices(Rows) {
  static constexpr Choice<Rows> kAll[] = {{Rows::packed, "packed"}, {Rows::padded, "padded"}};
  return kAll;
}

std::span<const Choice<AttentionScope>> choices(AttentionScope) {
  static constexpr Choice<AttentionScope> kAll[] = {{AttentionScope::per_document, "per_document"},
                                                    {AttentionScope::whole_row, "whole_row"}};
  return kAll;
}

std::span<const Choice<Packer>> choices(Packer) {
  static constexpr Choice<Packer> kAll[] = {{Packer::concatenate, "concatenate"},
                                            {Packer::first_fit, "first_fit"},
                                            {Packer::best_fit, "best_fit"},
                                            {Packer::balanced, "balanced"}};
  return kAll;
}

std::span<const Choice<Placement>> choices(Placement) {
  static constexpr Choice<Placement> kAll[] = {{Placement::contiguous, "contiguous"},
                                               {Placement::zigzag, "zigzag"},
                                               {Placement::zigzag_per_document, "zigzag_per_document"},
                                               {Placement::striped, "striped"},
                                               {Placement::balanced, "balanced"},
                                               {Placement::automatic, "auto"}};
  return kAll;
}

std::span<const Choice<AttentionKernel>> choices(AttentionKernel) {
  static constexpr Choice<AttentionKernel> kAll[] = {{AttentionKernel::flash, "flash"},
                                                     {AttentionKernel::unfused, "unfused"}};
  return kAll;
}

std::span<const Choice<ActivationKernel>> choices(ActivationKernel) {
  static constexpr Choice<ActivationKernel> kAll[] = {{ActivationKernel::fused, "fused"},
                                                      {ActivationKernel::unfused, "unfused"}};
  return kAll;
}

std::span<const Choice<LossKernel>> choices(LossKernel) {
  static constexpr Choice<LossKernel> kAll[] = {{LossKernel::fused, "fused"},
                                                {LossKernel::fp32_logits, "fp32_logits"},
                                                {LossKernel::fp32_softmax, "fp32_softmax"},
                                                {LossKernel::chunked, "chunked"}};
  return kAll;
}

std::span<const Choice<GradientReduce>> choices(GradientReduce) {
  static constexpr Choice<GradientReduce> kAll[] = {{GradientReduce::all_reduce, "all_reduce"},
                                                    {GradientReduce::all_to_all_sum, "all_to_all_sum"}};
  return kAll;
}

std::span<const Choice<GradientExchange>> choices(GradientExchange) {
  static constexpr Choice<GradientExchange> kAll[] = {{GradientExchange::flat, "flat"},
                                                      {GradientExchange::hierarchical, "hierarchical"}};
  return kAll;
}

std::span<const Choice<OptimizerKind>> choices(OptimizerKind) {
  static constexpr Choice<OptimizerKind> kAll[] = {{OptimizerKind::adamw, "adamw"}, {OptimizerKind::sgd, "sgd"}};
  return kAll;
}

std::span<const Choice<LearningRateSchedule>> choices(LearningRateSchedule) {
  static constexpr Choice<LearningRateSchedule> kAll[] = {{LearningRateSchedule::constant, "constant"},
                                                          {LearningRateSchedule::linear, "linear"},
                                                          {LearningRateSchedule::cosine, "cosine"}};
  return kAll;
}

std::span<const Choice<ActivationMethod>> choices(ActivationMethod) {
  static constexpr Choice<ActivationMethod> kAll[] = {{ActivationMethod::policy, "policy"},
                                                      {ActivationMethod::optimal, "optimal"}};
  return kAll;
}

std::span<const Choice<Rounding>> choices(Rounding) {
  static constexpr Choice<Rounding> kAll[] = {{Rounding::nearest_even, "nearest_even"},
                                              {Rounding::stochastic, "stochastic"}};
  return kAll;
}

std::span<const Choice<ScaleFormat>> choices(ScaleFormat) {
  static constexpr Choice<ScaleFormat> kAll[] = {{ScaleFormat::fp32, "fp32"},
                                                 {ScaleFormat::bf16, "bf16"},
                                                 {ScaleFormat::e8m0, "e8m0"},
                                                 {ScaleFormat::e4m3, "e4m3"}};
  return kAll;
}

std::span<const Choice<Norm>> choices(Norm) {
  static constexpr Choice<Norm> kAll[] = {{Norm::rms_norm, "rms_norm"}, {Norm::layer_norm, "layer_norm"}};
  return kAll;
}

std::span<const Choice<Activation>> choices(Activation) {
  static constexpr Choice<Activation> kAll[] = {{Activation::silu, "silu"},
                                                {Activation::gelu, "gelu"},
                                                {Activation::relu, "relu"},
                                                {Activation::squared_relu, "squared_relu"}};
  return kAll;
}

std::span<const Choice<Position>> choices(Position) {
  static constexpr Choice<Position> kAll[] = {
      {Position::rope, "rope"}, {Position::learned, "learned"}, {Position::alibi, "alibi"}, {Position::none, "none"}};
  return kAll;
}

std::span<const Choice<Provenance>> choices(Provenance) {
  static constexpr Choice<Provenance> kAll[] = {{Provenance::datasheet, "datasheet"},
                                                {Provenance::calibrated, "calibrated"},
                                                {Provenance::interpolated, "interpolated"},
                                                {Provenance::assumed, "assumed"}};
  return kAll;
}

std::span<const Choice<Pass>> choices(Pass) {
  static constexpr Choice<Pass> kAll[] = {
      {Pass::forward, "forward"}, {Pass::input_gradient, "input_gradient"}, {Pass::weight_gradient, "weight_gradient"}};
  return kAll;
}

std::span<const Choice<Collective>> choices(Collective) {
  static constexpr Choice<Collective> kAll[] = {
      {Collective::all_reduce, "all_reduce"},         {Collective::all_gather, "all_gather"},
      {Collective::reduce_scatter, "reduce_scatter"}, {Collective::all_to_all, "all_to_all"},
      {Collective::broadcast, "broadcast"},           {Collective::send_receive, "send_receive"}};
  return kAll;
}

}  // namespace reckon
