#include "runtime/train/ops/norm.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "runtime/train/kernels/device/norm.h"
#include "runtime/train/ops/dispatch.h"

namespace reckon {
namespace {

kernels::RowPlaces dense(std::int64_t width) {
  return {1, width};
}

}  // namespace

void norm_forward(Norm kind, double epsilon, const at::Tensor& x, const NormWeights& weights, const at::Tensor& y,
                  const at::Tensor& statistics) {
  with_element_type(x, [&]<class T>(T, auto... place) {
    using A = kernels::Accumulator<T>;
    if (kind == Norm::rms_norm) {
      if constexpr (sizeof...(place) == 0)
        kernels::rms_norm_forward<T>(pointer<T>(x), pointer<T>(weights.weight), pointer<T>(y), pointer<A>(statistics),
                                     rows_of(x), width_of(x), epsilon);
      else
        kernels::rms_norm_forward<T>(pointer<T>(x), dense(width_of(x)), pointer<T>(weights.weight), pointer<T>(y),
                                     dense(width_of(x)), pointer<A>(statistics), dense(1), rows_of(x), width_of(x),
                                     epsilon, place...);
    } else
      kernels::layer_norm_forward<T>(pointer<T>(x), pointer<T>(weights.weight), pointer<T>(weights.bias), pointer<T>(y),
                                     pointer<A>(statistics), rows_of(x), width_of(x), epsilon, place...);
  });
}

namespace {

/// On a device: before dx, which may lie where dy does.
void add_weight_gradients(Norm kind, const at::Tensor& dy, const at::Tensor& x, const NormWeights& weights,
                          const at::Tensor& statistics) {
  const at::ScalarType wide = statistics.scalar_type();
  constexpr std::int64_t kRows = 1024;  // at a time: temporaries stay small
  for (std::int64_t first = 0; first < rows_of(x); first += kRows) {
    const auto run = [&](const at::Tensor& tensor, std::int64_t width) {
      return tensor.view({rows_of(x), width}).narrow(0, first, std::min(kRows, rows_of(x) - first)).to(wide);
    };
    const at::Tensor gradient = run(dy, width_of(x));
    const at::Tensor statistic = run(statistics, kind == Norm::rms_norm ? 1 : 2);
    const at::Tensor normed = kind == Norm::rms_norm
                                  ? run(x, width_of(x)).mul(statistic)
                                  : run(x, width_of(x)).sub(statistic.narrow(1, 0, 1)).mul(statistic.narrow(1, 1, 1));
    at::Tensor(weights.weight_gradient).add_(normed.mul(gradient).sum(0));
    if (weights.bias_gradient.defined()) at::Tensor(weights.bias_gradient).add_(gradient.sum(0));
  }
}

}  // namespace

void norm_backward(Norm kind, const at::Tensor& dy, const at::Tensor& x, const NormWeights& weights,
                   const at::Tensor& statistics, const at::Tensor& dx, bool accumulate) {
  with_element_type(x, [&]<class T>(T, auto... place) {
    using A = kernels::Accumulator<T>;
    const std::int64_t rows = rows_of(x), width = width_of(x);
    if constexpr (sizeof...(place) > 0) {
      add_weight_gradients(kind, dy, x, weights, statistics);
      if (kind == Norm::rms_norm)
        kernels::rms_norm_backward<T>(pointer<T>(dy), dense(width), pointer<T>(x), dense(width),
                                      pointer<T>(weights.weight), pointer<A>(statistics), dense(1), pointer<T>(dx),
                                      dense(width), accumulate, rows, width, place...);
      else
        kernels::layer_norm_backward<T>(pointer<T>(dy), pointer<T>(x), pointer<T>(weights.weight),
                                        pointer<A>(statistics), pointer<T>(dx), accumulate, rows, width, place...);
    } else if (kind == Norm::rms_norm) {
      kernels::rms_norm_backward<T>(pointer<T>(dy), pointer<T>(x), pointer<T>(weights.weight), pointer<A>(statistics),
                                    pointer<T>(dx), accumulate, pointer<A>(weights.weight_gradient), rows, width);
    } else {
      kernels::layer_norm_backward<T>(pointer<T>(dy), pointer<T>(x), pointer<T>(weights.weight), pointer<A>(statistics),
                                      pointer<T>(dx), accumulate, pointer<A>(weights.weight_gradient),
                                      pointer<A>(weights.bias_gradient), rows, width);
    }
  });
}

}  // namespace reckon
