#include "runtime/train/ops/head_norm.h"

#include <ATen/ATen.h>

#include "runtime/train/kernels/norm.h"
#include "runtime/train/ops/dispatch.h"

namespace reckon {

void head_norm_forward(double epsilon, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& y,
                       const at::Tensor& statistics) {
  with_element_type(x, [&]<class T>(T) {
    using A = kernels::Accumulator<T>;
    for (std::int64_t token = 0; token < x.size(0); ++token)
      kernels::rms_norm_forward<T>(
          pointer<T>(x) + token * x.stride(0), pointer<T>(weight), pointer<T>(y) + token * y.stride(0),
          pointer<A>(statistics) + token * statistics.stride(0), statistics.size(1), weight.numel(), epsilon);
  });
}

void head_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                        const at::Tensor& statistics, const at::Tensor& dx, const at::Tensor& weight_gradient) {
  with_element_type(x, [&]<class T>(T) {
    using A = kernels::Accumulator<T>;
    for (std::int64_t token = 0; token < x.size(0); ++token)
      kernels::rms_norm_backward<T>(pointer<T>(dy) + token * dy.stride(0), pointer<T>(x) + token * x.stride(0),
                                    pointer<T>(weight), pointer<A>(statistics) + token * statistics.stride(0),
                                    pointer<T>(dx) + token * dx.stride(0), false, pointer<A>(weight_gradient),
                                    statistics.size(1), weight.numel());
  });
}

}  // namespace reckon
