// Every weight tensor of a model: name, shape and how tensor and expert parallelism split it. Counting parameters,
// sharding them, checkpoints and gradient buckets all read this one list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/model_spec.h"

namespace reckon {

enum class Split {
  replicated,  // every tensor rank holds all of it (norms, row-parallel biases, router)
  rows,        // dimension 0 over the tensor group: column-parallel weights (outputs), vocabulary tables
  columns,     // dimension 1 over the tensor group: row-parallel weights (inputs)
  kv_rows,     // as rows, but whole KV heads are replicated when there are fewer heads than ranks
};

struct Parameter {
  std::string name;                 // Hugging Face LLaMA naming, e.g. "model.layers.0.self_attn.q_proj.weight"
  std::vector<std::int64_t> shape;  // whole tensor: [outputs, inputs] or [size]
  Split split = Split::replicated;
  std::int64_t expert = -1;  // routed expert that it belongs to: divided by expert parallelism; -1 = none

  std::int64_t elements() const;
  bool is_routed_expert() const { return expert >= 0; }
};

std::vector<Parameter> embedding_parameters(const ModelSpec& model);
/// Weights of layer `layer` (0-based); routed experts appear once each.
std::vector<Parameter> layer_parameters(const ModelSpec& model, std::int64_t layer);
/// Final norm and head; without the head table when it is tied.
std::vector<Parameter> head_parameters(const ModelSpec& model);

/// Exact number of weights; tied tables count once.
std::int64_t count_parameters(const ModelSpec& model);
/// Weights that one token uses: routed experts count experts_per_token of them. Tables count whole, except the input
/// table where the model's vendor leaves it out (moe.active_without_embedding); a bias that only balances the choice of
/// experts does not count.
std::int64_t count_active_parameters(const ModelSpec& model);

}  // namespace reckon
