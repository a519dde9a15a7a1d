#include "runtime/train/ops/head_norm.h"

#include <ATen/ATen.h>

#include "runtime/train/kernels/device/norm.h"
#include "runtime/train/ops/dispatch.h"

namespace reckon {
namespace {

/// Heads of a token side by side, `statistics` of which there are as many.
kernels::RowPlaces heads_of(const at::Tensor& tensor, const at::Tensor& statistics) {
  return {statistics.size(1), tensor.stride(0)};
}

}  // namespace

void head_norm_forward(double epsilon, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& y,
                       const at::Tensor& statistics) {
  with_element_type(x, [&]<class T>(T, auto... place) {
    using A = kernels::Accumulator<T>;
    if constexpr (sizeof...(place) > 0)
      return kernels::rms_norm_forward<T>(pointer<T>(x), heads_of(x, statistics), pointer<T>(weight), pointer<T>(y),
                                          heads_of(y, statistics), pointer<A>(statistics),
                                          heads_of(statistics, statistics), x.size(0) * statistics.size(1),
                                          weight.numel(), epsilon, place...);
    else
      for (std::int64_t token = 0; token < x.size(0); ++token)
        kernels::rms_norm_forward<T>(
            pointer<T>(x) + token * x.stride(0), pointer<T>(weight), pointer<T>(y) + token * y.stride(0),
            pointer<A>(statistics) + token * statistics.stride(0), statistics.size(1), weight.numel(), epsilon);
  });
}

void head_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                        const at::Tensor& statistics, const at::Tensor& dx, const at::Tensor& weight_gradient) {
  with_element_type(x, [&]<class T>(T, auto... place) {
    using A = kernels::Accumulator<T>;
    if constexpr (sizeof...(place) > 0) {
      const auto by_head = [&](const at::Tensor& rows) {
        return rows.unflatten(1, {statistics.size(1), weight.numel()}).to(weight_gradient.scalar_type());
      };
      at::Tensor(weight_gradient).add_(by_head(x).mul(statistics.unsqueeze(2)).mul(by_head(dy)).flatten(0, 1).sum(0));
      return kernels::rms_norm_backward<T>(pointer<T>(dy), heads_of(dy, statistics), pointer<T>(x),
                                           heads_of(x, statistics), pointer<T>(weight), pointer<A>(statistics),
                                           heads_of(statistics, statistics), pointer<T>(dx), heads_of(dx, statistics),
                                           false, x.size(0) * statistics.size(1), weight.numel(), place...);
    } else
      for (std::int64_t token = 0; token < x.size(0); ++token)
        kernels::rms_norm_backward<T>(pointer<T>(dy) + token * dy.stride(0), pointer<T>(x) + token * x.stride(0),
                                      pointer<T>(weight), pointer<A>(statistics) + token * statistics.stride(0),
                                      pointer<T>(dx) + token * dx.stride(0), false, pointer<A>(weight_gradient),
                                      statistics.size(1), weight.numel());
  });
}

}  // namespace reckon
