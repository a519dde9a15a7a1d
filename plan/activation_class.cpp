#include "plan/activation_class.h"

#include <array>
#include <cstddef>

namespace reckon {

namespace {

struct ClassRow {
  ActivationClass activation_class;
  std::string_view name;
  bool has_policy;  // statistics, indices and the loss's buffers are kept as they are
};

constexpr std::array kClasses{
    ClassRow{ActivationClass::norm_input, "norm_input", true},
    ClassRow{ActivationClass::norm_statistics, "norm_statistics", false},
    ClassRow{ActivationClass::qkv_input, "qkv_input", true},
    ClassRow{ActivationClass::query, "query", true},
    ClassRow{ActivationClass::key, "key", true},
    ClassRow{ActivationClass::value, "value", true},
    ClassRow{ActivationClass::attention_output, "attention_output", true},
    ClassRow{ActivationClass::log_sum_exp, "log_sum_exp", false},
    ClassRow{ActivationClass::attention_scores, "attention_scores", true},
    ClassRow{ActivationClass::projection_input, "projection_input", true},
    ClassRow{ActivationClass::ffn_input, "ffn_input", true},
    ClassRow{ActivationClass::gate, "gate", true},
    ClassRow{ActivationClass::up, "up", true},
    ClassRow{ActivationClass::ffn_hidden, "ffn_hidden", true},
    ClassRow{ActivationClass::down_input, "down_input", true},
    ClassRow{ActivationClass::router, "router", false},
    ClassRow{ActivationClass::expert_input, "expert_input", true},
    ClassRow{ActivationClass::latent, "latent", true},
    ClassRow{ActivationClass::head_input, "head_input", true},
    ClassRow{ActivationClass::logits, "logits", false},
    ClassRow{ActivationClass::tokens, "tokens", false},
    ClassRow{ActivationClass::dropout_mask, "dropout_mask", false},
    ClassRow{ActivationClass::transient, "transient", false},
};

constexpr bool rows_follow_the_enumeration() {
  for (std::size_t i = 0; i < kClasses.size(); ++i)
    if (kClasses[i].activation_class != static_cast<ActivationClass>(i)) return false;
  return true;
}
static_assert(rows_follow_the_enumeration());

}  // namespace

std::string_view name_of(ActivationClass activation_class) {
  return kClasses[static_cast<std::size_t>(activation_class)].name;
}

std::optional<ActivationClass> activation_class(std::string_view name) {
  for (const ClassRow& row : kClasses)
    if (row.name == name) return row.activation_class;
  return std::nullopt;
}

const std::vector<ActivationClass>& policy_classes() {
  static const std::vector<ActivationClass> classes = [] {
    std::vector<ActivationClass> with_policy;
    for (const ClassRow& row : kClasses)
      if (row.has_policy) with_policy.push_back(row.activation_class);
    return with_policy;
  }();
  return classes;
}

}  // namespace reckon
