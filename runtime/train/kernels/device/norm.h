// norm.h for a device, for rows that are heads of a token as well as for whole tokens. The weights' gradients, which
// are sums over rows, are the callers' (library reductions).
#pragma once

#include "runtime/train/kernels/device/launch.h"
#include "runtime/train/kernels/norm.h"

namespace reckon::kernels {

/// Where rows begin: `heads` of them side by side in each token, tokens `stride` elements apart.
struct RowPlaces {
  std::int64_t heads, stride;
  RECKON_HOST_DEVICE std::int64_t of(std::int64_t row, std::int64_t width) const {
    return row / heads * stride + row % heads * width;
  }
};

template <class A>
struct SumOfTwo {
  static RECKON_HOST_DEVICE Found<A> nothing() { return {A(0), A(0)}; }
  static RECKON_HOST_DEVICE Found<A> join(Found<A> a, Found<A> b) { return {a.first + b.first, a.second + b.second}; }
};

template <class T>
struct RmsNormForwardKernel : SumOfTwo<Accumulator<T>> {
  using A = Accumulator<T>;
  const T *x, *weight;
  T* y;
  A* statistics;
  RowPlaces x_rows, y_rows, statistic_rows;
  std::int64_t width;
  double epsilon;

  RECKON_HOST_DEVICE NoContext begin(std::int64_t) const { return {}; }
  RECKON_HOST_DEVICE void visit(NoContext, std::int64_t row, std::int64_t column, Found<A>& found) const {
    const A value = load(x[x_rows.of(row, width) + column]);
    found.first += value * value;
  }
  RECKON_HOST_DEVICE void finish(NoContext, std::int64_t row, Found<A> found, int lane) const {
    const A reciprocal = A(1) / std::sqrt(found.first / static_cast<A>(width) + static_cast<A>(epsilon));
    if (lane == 0) statistics[statistic_rows.of(row, 1)] = reciprocal;
    const T* const from = x + x_rows.of(row, width);
    T* const to = y + y_rows.of(row, width);
    for (std::int64_t i = lane; i < width; i += kLanes) store(to[i], load(from[i]) * reciprocal * load(weight[i]));
  }
};

template <class T>
struct RmsNormBackwardKernel : SumOfTwo<Accumulator<T>> {
  using A = Accumulator<T>;
  const T *dy, *x, *weight;
  const A* statistics;
  T* dx;
  RowPlaces dy_rows, x_rows, dx_rows, statistic_rows;
  std::int64_t width;
  bool accumulate;

  RECKON_HOST_DEVICE A begin(std::int64_t row) const { return statistics[statistic_rows.of(row, 1)]; }
  RECKON_HOST_DEVICE void visit(A reciprocal, std::int64_t row, std::int64_t column, Found<A>& found) const {
    const A gradient = load(dy[dy_rows.of(row, width) + column]), value = load(x[x_rows.of(row, width) + column]);
    found.first += gradient * value * reciprocal * load(weight[column]);
  }
  RECKON_HOST_DEVICE void finish(A reciprocal, std::int64_t row, Found<A> found, int lane) const {
    const A share = found.first / static_cast<A>(width) * reciprocal;
    const T *const outer = dy + dy_rows.of(row, width), *const inner = x + x_rows.of(row, width);
    T* const to = dx + dx_rows.of(row, width);
    for (std::int64_t i = lane; i < width; i += kLanes) {
      const A gradient = reciprocal * (load(weight[i]) * load(outer[i]) - load(inner[i]) * share);
      store(to[i], accumulate ? load(to[i]) + gradient : gradient);
    }
  }
};

/// Mean and variance in one pass, from what values differ from the row's first.
template <class T>
struct LayerNormForwardKernel : SumOfTwo<Accumulator<T>> {
  using A = Accumulator<T>;
  const T *x, *weight, *bias;
  T* y;
  A* statistics;
  std::int64_t width;
  double epsilon;

  RECKON_HOST_DEVICE A begin(std::int64_t row) const { return load(x[row * width]); }
  RECKON_HOST_DEVICE void visit(A origin, std::int64_t row, std::int64_t column, Found<A>& found) const {
    const A value = load(x[row * width + column]) - origin;
    found.first += value;
    found.second += value * value;
  }
  RECKON_HOST_DEVICE void finish(A origin, std::int64_t row, Found<A> found, int lane) const {
    const A shift = found.first / static_cast<A>(width), mean = origin + shift;
    const A spread = found.second / static_cast<A>(width) - shift * shift, variance = spread > A(0) ? spread : A(0);
    const A reciprocal = A(1) / std::sqrt(variance + static_cast<A>(epsilon));
    if (lane == 0) {
      statistics[2 * row] = mean;
      statistics[2 * row + 1] = reciprocal;
    }
    for (std::int64_t i = lane; i < width; i += kLanes) {
      const A normed = (load(x[row * width + i]) - mean) * reciprocal * load(weight[i]);
      store(y[row * width + i], bias != nullptr ? normed + load(bias[i]) : normed);
    }
  }
};

template <class T>
struct LayerNormBackwardKernel : SumOfTwo<Accumulator<T>> {
  using A = Accumulator<T>;
  const T *dy, *x, *weight;
  const A* statistics;
  T* dx;
  std::int64_t width;
  bool accumulate;

  RECKON_HOST_DEVICE Found<A> begin(std::int64_t row) const { return {statistics[2 * row], statistics[2 * row + 1]}; }
  RECKON_HOST_DEVICE A normed(Found<A> mean_and_reciprocal, std::int64_t place) const {
    return (load(x[place]) - mean_and_reciprocal.first) * mean_and_reciprocal.second;
  }
  RECKON_HOST_DEVICE void visit(Found<A> statistic, std::int64_t row, std::int64_t column, Found<A>& found) const {
    const std::int64_t place = row * width + column;
    const A scaled = load(dy[place]) * load(weight[column]);
    found.first += scaled;
    found.second += scaled * normed(statistic, place);
  }
  RECKON_HOST_DEVICE void finish(Found<A> statistic, std::int64_t row, Found<A> found, int lane) const {
    const A mean_scaled = found.first / static_cast<A>(width), mean_dot = found.second / static_cast<A>(width);
    for (std::int64_t i = lane; i < width; i += kLanes) {
      const std::int64_t place = row * width + i;
      const A gradient =
          statistic.second * (load(dy[place]) * load(weight[i]) - mean_scaled - normed(statistic, place) * mean_dot);
      store(dx[place], accumulate ? load(dx[place]) + gradient : gradient);
    }
  }
};

template <class T>
void rms_norm_forward(const T* x, RowPlaces x_rows, const T* weight, T* y, RowPlaces y_rows, Accumulator<T>* statistics,
                      RowPlaces statistic_rows, std::int64_t rows, std::int64_t width, double epsilon,
                      DeviceStream stream) {
  launch_rows(RmsNormForwardKernel<T>{{}, x, weight, y, statistics, x_rows, y_rows, statistic_rows, width, epsilon},
              rows, stream);
}

template <class T>
void rms_norm_backward(const T* dy, RowPlaces dy_rows, const T* x, RowPlaces x_rows, const T* weight,
                       const Accumulator<T>* statistics, RowPlaces statistic_rows, T* dx, RowPlaces dx_rows,
                       bool accumulate, std::int64_t rows, std::int64_t width, DeviceStream stream) {
  launch_rows(
      RmsNormBackwardKernel<T>{
          {}, dy, x, weight, statistics, dx, dy_rows, x_rows, dx_rows, statistic_rows, width, accumulate},
      rows, stream);
}

template <class T>
void layer_norm_forward(const T* x, const T* weight, const T* bias, T* y, Accumulator<T>* statistics, std::int64_t rows,
                        std::int64_t width, double epsilon, DeviceStream stream) {
  launch_rows(LayerNormForwardKernel<T>{{}, x, weight, bias, y, statistics, width, epsilon}, rows, stream);
}

template <class T>
void layer_norm_backward(const T* dy, const T* x, const T* weight, const Accumulator<T>* statistics, T* dx,
                         bool accumulate, std::int64_t rows, std::int64_t width, DeviceStream stream) {
  launch_rows(LayerNormBackwardKernel<T>{{}, dy, x, weight, statistics, dx, width, accumulate}, rows, stream);
}

}  // namespace reckon::kernels
