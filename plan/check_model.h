// Sizes that follow from others, and what no transformer can have.
#pragma once

#include <vector>

#include "plan/errors.h"
#include "plan/model_spec.h"

namespace reckon {

/// Fills what is zero and follows from other fields: kv_heads = heads, head_dim = hidden / heads, expert_ffn_hidden =
/// ffn_hidden, shared_ffn_hidden = shared_experts * expert_ffn_hidden.
void fill_derived_sizes(ModelSpec& model);

/// Sizes that are zero, negative or beyond reason, heads that do not divide hidden, and the like. One sentence each;
/// `key` is the dotted key of the model file. Everything that passes can be counted and laid out in 64 bits.
std::vector<Diagnostic> check_model(const ModelSpec& model);

}  // namespace reckon
