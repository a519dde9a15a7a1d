// The tensors that one section keeps from the forward to the backward pass of one micro-batch, by index of its op list.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

namespace reckon {

class SavedActivations {
 public:
  /// Keeps the tensors that are defined.
  void keep(std::vector<at::Tensor> tensors) { tensors_ = std::move(tensors); }
  /// Hands them back; the store is empty afterwards.
  std::vector<at::Tensor> take() { return std::exchange(tensors_, {}); }
  bool empty() const { return tensors_.empty(); }

 private:
  std::vector<at::Tensor> tensors_;
};

}  // namespace reckon
