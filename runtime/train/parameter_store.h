// The weights of one rank in one flat buffer in compute precision, and their main gradients in another, at the offsets
// of plan/parameter_layout. With ZeRO-3 only this rank's shard of the weights stays.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "plan/parameter_layout.h"
#include "plan/plan.h"
#include "runtime/train/flat_window.h"
#include "runtime/train/main_gradients.h"
#include "runtime/train/op_call.h"

namespace reckon {

/// Where the weights of one op lie; what OpParameters are views of.
struct OpPlaces {
  WeightPlace weight, bias, second_weight;
};

class ParameterStore {
 public:
  /// Allocates both buffers and fills the weights: normal with deviation 0.02 for matrices, ones for norms, zeros for
  /// biases. A weight's value depends on the seed, its name and its place in the whole tensor only, so it does not
  /// change with the number of ranks. `compute` and `accumulator` say type and device; `shard` is this rank's place in
  /// its shard group.
  ParameterStore(const Plan& plan, ParameterLayout layout, const at::TensorOptions& compute,
                 const at::TensorOptions& accumulator, std::int64_t shard);

  const ParameterLayout& layout() const { return layout_; }
  std::int64_t shard() const { return shard_; }
  const at::Tensor& weights() const { return weights_; }  // [padded_elements], with ZeRO-3 [shard_elements]
  bool weights_are_shard() const { return weights_are_shard_; }
  MainGradients& main_gradients() { return main_gradients_; }
  const MainGradients& main_gradients() const { return main_gradients_; }
  const at::Tensor& gradients() const { return main_gradients_.buffer(); }

  /// This rank's shard of a unit in the weights' buffer.
  at::Tensor own_weights(const FlatRange& unit) const;
  /// One parameter's view of a whole flat buffer.
  at::Tensor view(const at::Tensor& whole, const LocalParameter& parameter) const;
  /// The parameter of that name on this rank, or nullptr.
  const LocalParameter* find(const std::string& name) const;

  /// Places of the weights of every op of a list, for model layer `layer` (kEmbeddingLayer, kHeadLayer).
  std::vector<OpPlaces> op_places(const OpList& list, std::int64_t layer) const;

 private:
  void fill_weights(std::uint64_t seed);
  /// Parameters that lie one after the other as one matrix or vector; no shape if the first is absent.
  WeightPlace fused(const std::vector<std::string>& names) const;

  ParameterLayout layout_;
  std::int64_t shard_;
  bool weights_are_shard_;
  at::Tensor weights_;
  MainGradients main_gradients_;
};

/// Views of the weights and gradients of every op in what is whole at the moment.
std::vector<OpParameters> op_parameters(const std::vector<OpPlaces>& places, const std::vector<FlatWindow>& weights,
                                        const std::vector<FlatWindow>& gradients);

}  // namespace reckon
