#include "runtime/train/ops/norm.h"

#include <ATen/ATen.h>

#include "runtime/train/kernels/norm.h"
#include "runtime/train/ops/dispatch.h"

namespace reckon {

void norm_forward(Norm kind, double epsilon, const at::Tensor& x, const NormWeights& weights, const at::Tensor& y,
                  const at::Tensor& statistics) {
  with_element_type(x, [&]<class T>(T) {
    using A = kernels::Accumulator<T>;
    if (kind == Norm::rms_norm)
      kernels::rms_norm_forward<T>(pointer<T>(x), pointer<T>(weights.weight), pointer<T>(y), pointer<A>(statistics),
                                   rows_of(x), width_of(x), epsilon);
    else
      kernels::layer_norm_forward<T>(pointer<T>(x), pointer<T>(weights.weight), pointer<T>(weights.bias), pointer<T>(y),
                                     pointer<A>(statistics), rows_of(x), width_of(x), epsilon);
  });
}

void norm_backward(Norm kind, const at::Tensor& dy, const at::Tensor& x, const NormWeights& weights,
                   const at::Tensor& statistics, const at::Tensor& dx, bool accumulate) {
  with_element_type(x, [&]<class T>(T) {
    using A = kernels::Accumulator<T>;
    if (kind == Norm::rms_norm)
      kernels::rms_norm_backward<T>(pointer<T>(dy), pointer<T>(x), pointer<T>(weights.weight), pointer<A>(statistics),
                                    pointer<T>(dx), accumulate, pointer<A>(weights.weight_gradient), rows_of(x),
                                    width_of(x));
    else
      kernels::layer_norm_backward<T>(pointer<T>(dy), pointer<T>(x), pointer<T>(weights.weight), pointer<A>(statistics),
                                      pointer<T>(dx), accumulate, pointer<A>(weights.weight_gradient),
                                      pointer<A>(weights.bias_gradient), rows_of(x), width_of(x));
  });
}

}  // namespace reckon
