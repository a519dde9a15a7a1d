#include "runtime/train/ops/ffn_activation.h"

#include <ATen/ATen.h>

#include "runtime/train/kernels/activation.h"
#include "runtime/train/ops/dispatch.h"

namespace reckon {

void activation_forward(Activation activation, bool gated, const at::Tensor& first_product, const at::Tensor& hidden) {
  with_element_type(hidden, [&]<class T>(T) {
    if (gated)
      kernels::gated_forward<T>(activation, pointer<T>(first_product), pointer<T>(hidden), hidden.size(0),
                                hidden.size(1));
    else kernels::plain_forward<T>(activation, pointer<T>(first_product), pointer<T>(hidden), hidden.numel());
  });
}

void activation_backward(Activation activation, bool gated, const at::Tensor& hidden_gradient,
                         const at::Tensor& first_product, const at::Tensor& gradient) {
  with_element_type(gradient, [&]<class T>(T) {
    if (gated)
      kernels::gated_backward<T>(activation, pointer<T>(hidden_gradient), pointer<T>(first_product),
                                 pointer<T>(gradient), hidden_gradient.size(0), hidden_gradient.size(1));
    else
      kernels::plain_backward<T>(activation, pointer<T>(hidden_gradient), pointer<T>(first_product),
                                 pointer<T>(gradient), gradient.numel());
  });
}

}  // namespace reckon
