// The weights of one rank in one flat buffer in compute precision, and their main gradients in another, at the offsets
// of plan/parameter_layout.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "plan/parameter_layout.h"
#include "runtime/train/op_call.h"
#include "runtime/train/section.h"

namespace reckon {

class ParameterStore {
 public:
  /// Allocates both buffers and fills the weights: normal with deviation 0.02 for matrices, ones for norms, zeros for
  /// biases. A weight's value depends on the seed, its name and its place in the whole tensor only, so it does not
  /// change with the number of ranks.
  ParameterStore(ParameterLayout layout, at::ScalarType compute, at::ScalarType gradient, std::uint64_t seed);

  const ParameterLayout& layout() const { return layout_; }
  const at::Tensor& weights() const { return weights_; }      // [padded_elements]
  const at::Tensor& gradients() const { return gradients_; }  // [padded_elements]

  /// One parameter's view of either buffer.
  at::Tensor view(const at::Tensor& buffer, const LocalParameter& parameter) const;
  /// The parameter of that name on this rank, or nullptr.
  const LocalParameter* find(const std::string& name) const;

  /// Weights of every op of a list, for model layer `layer` (kEmbeddingLayer, kHeadLayer).
  std::vector<OpParameters> op_parameters(const OpList& list, std::int64_t layer) const;

 private:
  /// Parameters that lie one after the other as one matrix or vector; undefined if the first is absent.
  at::Tensor fused(const at::Tensor& buffer, const std::vector<std::string>& names) const;

  ParameterLayout layout_;
  at::Tensor weights_, gradients_;
};

}  // namespace reckon
