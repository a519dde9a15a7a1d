#include "runtime/train/ops/ffn_activation.h"

#include <ATen/ATen.h>

#include "runtime/train/kernels/device/activation.h"
#include "runtime/train/ops/dispatch.h"

namespace reckon {
namespace {

template <class T>
kernels::GateAndUp<T> gate_and_up(const at::Tensor& gate, const at::Tensor& up) {
  return {pointer<T>(gate), gate.stride(0), pointer<T>(up), up.stride(0)};
}

}  // namespace

void activation_forward(Activation activation, const at::Tensor& gate, const at::Tensor& up, const at::Tensor& hidden) {
  with_element_type(hidden, [&]<class T>(T, auto... place) {
    if (up.defined())
      kernels::gated_forward<T>(activation, gate_and_up<T>(gate, up), pointer<T>(hidden), hidden.size(0),
                                hidden.size(1), place...);
    else kernels::plain_forward<T>(activation, pointer<T>(gate), pointer<T>(hidden), hidden.numel(), place...);
  });
}

void activation_backward(Activation activation, const at::Tensor& hidden_gradient, const at::Tensor& gate,
                         const at::Tensor& up, const at::Tensor& gradient) {
  with_element_type(gradient, [&]<class T>(T, auto... place) {
    if (up.defined())
      kernels::gated_backward<T>(activation, pointer<T>(hidden_gradient), gate_and_up<T>(gate, up),
                                 pointer<T>(gradient), hidden_gradient.size(0), hidden_gradient.size(1), place...);
    else
      kernels::plain_backward<T>(activation, pointer<T>(hidden_gradient), pointer<T>(gate), pointer<T>(gradient),
                                 gradient.numel(), place...);
  });
}

}  // namespace reckon
