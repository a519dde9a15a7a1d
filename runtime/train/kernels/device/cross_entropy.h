// cross_entropy.h for a device.
#pragma once

#include "runtime/train/kernels/cross_entropy.h"
#include "runtime/train/kernels/device/launch.h"

namespace reckon::kernels {

template <class T>
RECKON_HOST_DEVICE std::int64_t local_target(const LogitRows<T>& x, std::int64_t row) {
  const std::int64_t column = x.targets[row] - x.first;
  return x.targets[row] >= 0 && column >= 0 && column < x.width ? column : -1;
}

template <class T>
struct RowMaximumKernel {
  using A = Accumulator<T>;
  LogitRows<T> x;
  A* maximum;
  std::int64_t width;
  static RECKON_HOST_DEVICE Found<A> nothing() { return {-A(INFINITY), A(0)}; }
  static RECKON_HOST_DEVICE Found<A> join(Found<A> a, Found<A> b) {
    return {a.first < b.first ? b.first : a.first, A(0)};
  }
  RECKON_HOST_DEVICE NoContext begin(std::int64_t) const { return {}; }
  RECKON_HOST_DEVICE void visit(NoContext, std::int64_t row, std::int64_t column, Found<A>& found) const {
    const A logit = load(x.logits[row * x.stride + column]);
    found.first = logit > found.first ? logit : found.first;
  }
  RECKON_HOST_DEVICE void finish(NoContext, std::int64_t row, Found<A> found, int lane) const {
    if (lane == 0) maximum[row] = found.first;
  }
};

template <class T>
struct ExponentialSumKernel {
  using A = Accumulator<T>;
  LogitRows<T> x;
  const A* maximum;
  A* sum;
  std::int64_t width;
  static RECKON_HOST_DEVICE Found<A> nothing() { return {A(0), A(0)}; }
  static RECKON_HOST_DEVICE Found<A> join(Found<A> a, Found<A> b) { return {a.first + b.first, A(0)}; }
  RECKON_HOST_DEVICE NoContext begin(std::int64_t) const { return {}; }
  RECKON_HOST_DEVICE void visit(NoContext, std::int64_t row, std::int64_t column, Found<A>& found) const {
    found.first += exponential(load(x.logits[row * x.stride + column]) - maximum[row]);
  }
  RECKON_HOST_DEVICE void finish(NoContext, std::int64_t row, Found<A> found, int lane) const {
    if (lane == 0) sum[row] = found.first;
  }
};

template <class T>
struct TargetLogitKernel {
  LogitRows<T> x;
  Accumulator<T>* target;
  RECKON_HOST_DEVICE void operator()(std::int64_t row) const {
    const std::int64_t column = local_target(x, row);
    target[row] = column >= 0 ? load(x.logits[row * x.stride + column]) : Accumulator<T>(0);
  }
};

/// maximum -> log-sum-exp, target logit -> loss of the row.
template <class T>
struct FinishLossKernel {
  using A = Accumulator<T>;
  const std::int32_t* targets;
  A* log_sum_exp;
  const A* sum;
  A* target;
  RECKON_HOST_DEVICE void operator()(std::int64_t row) const {
    log_sum_exp[row] += std::log(sum[row]);
    target[row] = targets[row] >= 0 ? log_sum_exp[row] - target[row] : A(0);
  }
};

template <class T>
struct CrossEntropyGradientKernel {
  using A = Accumulator<T>;
  LogitRows<T> x;
  const A* log_sum_exp;
  double scale;
  RECKON_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t row = i / x.stride, column = i % x.stride;
    T& logit = x.logits[i];
    if (column >= x.width) {
      logit = T{};
      return;
    }
    const A factor = x.targets[row] < 0 ? A(0) : static_cast<A>(scale);
    const A softmax = exponential(load(logit) - log_sum_exp[row]);
    store(logit, (column == local_target(x, row) ? softmax - A(1) : softmax) * factor);
  }
};

template <class T>
void row_maximum(const LogitRows<T>& x, Accumulator<T>* maximum, DeviceStream stream) {
  launch_rows(RowMaximumKernel<T>{x, maximum, x.width}, x.rows, stream);
}

template <class T>
void exponential_sum(const LogitRows<T>& x, const Accumulator<T>* maximum, Accumulator<T>* sum, DeviceStream stream) {
  launch_rows(ExponentialSumKernel<T>{x, maximum, sum, x.width}, x.rows, stream);
}

template <class T>
void target_logit(const LogitRows<T>& x, Accumulator<T>* target, DeviceStream stream) {
  launch(TargetLogitKernel<T>{x, target}, x.rows, stream);
}

/// log_sum_exp [rows] holds the maxima and target [rows] the target's logits; they become log-sum-exps and losses.
template <class T>
void finish_loss(const LogitRows<T>& x, Accumulator<T>* log_sum_exp, const Accumulator<T>* sum, Accumulator<T>* target,
                 DeviceStream stream) {
  launch(FinishLossKernel<T>{x.targets, log_sum_exp, sum, target}, x.rows, stream);
}

template <class T>
void cross_entropy_gradient(const LogitRows<T>& x, const Accumulator<T>* log_sum_exp, double scale,
                            DeviceStream stream) {
  launch(CrossEntropyGradientKernel<T>{x, log_sum_exp, scale}, x.rows * x.stride, stream);
}

}  // namespace reckon::kernels
