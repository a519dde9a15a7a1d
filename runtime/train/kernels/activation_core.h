// The FFN's functions with their slopes, for one element: the same lines on host and device.
#pragma once

#include "runtime/train/kernels/element.h"

namespace reckon::kernels {

template <class A>
struct ValueAndSlope {
  A value, slope;
};

struct Silu {
  template <class A>
  [[gnu::always_inline]] RECKON_HOST_DEVICE static ValueAndSlope<A> at(A x) {
    const A s = sigmoid(x);
    return {x * s, s * (A(1) + x * (A(1) - s))};
  }
};
struct Gelu {
  template <class A>
  [[gnu::always_inline]] RECKON_HOST_DEVICE static ValueAndSlope<A> at(A x) {
    constexpr A kRoot = A(0.7978845608028654), kCubic = A(0.044715);  // sqrt(2 / pi)
    const A t = hyperbolic_tangent(kRoot * (x + kCubic * x * x * x));
    const A slope = A(0.5) * (A(1) + t) + A(0.5) * x * (A(1) - t * t) * kRoot * (A(1) + A(3) * kCubic * x * x);
    return {A(0.5) * x * (A(1) + t), slope};
  }
};
struct Relu {
  template <class A>
  [[gnu::always_inline]] RECKON_HOST_DEVICE static ValueAndSlope<A> at(A x) {
    return {x > A(0) ? x : A(0), x > A(0) ? A(1) : A(0)};
  }
};
struct SquaredRelu {
  template <class A>
  [[gnu::always_inline]] RECKON_HOST_DEVICE static ValueAndSlope<A> at(A x) {
    const A positive = x > A(0) ? x : A(0);
    return {positive * positive, A(2) * positive};
  }
};

}  // namespace reckon::kernels
