// The classes of tensors that a backward pass may need. A plan's activation policy speaks in these names.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace reckon {

enum class ActivationClass {
  norm_input,       // residual stream before a norm
  norm_statistics,  // reciprocal standard deviations (and means)
  qkv_input,        // normed input of the QKV products
  query,
  key,
  value,
  attention_output,  // output of attention
  log_sum_exp,
  attention_scores,  // unfused attention only
  projection_input,  // input of the output projection; shares attention_output's storage when both are kept alike
  ffn_input,         // normed input of the FFN products
  gate,
  up,
  ffn_hidden,    // first product of an FFN without gate
  down_input,    // activation output, input of the down product
  router,        // routing probabilities
  expert_input,  // tokens as dispatched to local experts
  latent,        // MLA's compressed q and kv
  head_input,    // normed input of the head
  logits,
  tokens,  // token ids, targets, routing indices
  dropout_mask,
  transient,  // never kept
};

std::string_view name_of(ActivationClass activation_class);
std::optional<ActivationClass> activation_class(std::string_view name);
/// The classes a plan may give a policy, in the order above.
const std::vector<ActivationClass>& policy_classes();

}  // namespace reckon
