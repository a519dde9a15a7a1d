// activation.h for a device.
#pragma once

#include "runtime/train/kernels/activation.h"
#include "runtime/train/kernels/activation_core.h"
#include "runtime/train/kernels/device/launch.h"

namespace reckon::kernels {

template <class A>
RECKON_HOST_DEVICE ValueAndSlope<A> value_and_slope(Activation activation, A x) {
  switch (activation) {
    case Activation::silu: return Silu::at(x);
    case Activation::gelu: return Gelu::at(x);
    case Activation::relu: return Relu::at(x);
    case Activation::squared_relu: return SquaredRelu::at(x);
  }
  return {A(0), A(0)};
}

template <class T>
struct GatedForwardKernel {
  Activation activation;
  GateAndUp<T> in;
  T* hidden;
  std::int64_t width;
  RECKON_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t row = i / width, column = i % width;
    const auto f = value_and_slope(activation, load(in.gate[row * in.gate_stride + column]));
    store(hidden[i], f.value * load(in.up[row * in.up_stride + column]));
  }
};

template <class T>
struct GatedBackwardKernel {
  Activation activation;
  const T* hidden_gradient;
  GateAndUp<T> in;
  T* gradient;
  std::int64_t width;
  RECKON_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t row = i / width, column = i % width;
    const auto f = value_and_slope(activation, load(in.gate[row * in.gate_stride + column]));
    const auto up = load(in.up[row * in.up_stride + column]), outer = load(hidden_gradient[i]);
    T* const gate_gradient = gradient + row * 2 * width + column;
    store(gate_gradient[0], outer * up * f.slope);
    store(gate_gradient[width], outer * f.value);
  }
};

template <class T>
struct PlainForwardKernel {
  Activation activation;
  const T* x;
  T* hidden;
  RECKON_HOST_DEVICE void operator()(std::int64_t i) const {
    store(hidden[i], value_and_slope(activation, load(x[i])).value);
  }
};

template <class T>
struct PlainBackwardKernel {
  Activation activation;
  const T* hidden_gradient;
  const T* x;
  T* gradient;
  RECKON_HOST_DEVICE void operator()(std::int64_t i) const {
    store(gradient[i], load(hidden_gradient[i]) * value_and_slope(activation, load(x[i])).slope);
  }
};

template <class T>
void gated_forward(Activation activation, GateAndUp<T> in, T* hidden, std::int64_t rows, std::int64_t width,
                   DeviceStream stream) {
  launch(GatedForwardKernel<T>{activation, in, hidden, width}, rows * width, stream);
}

template <class T>
void gated_backward(Activation activation, const T* hidden_gradient, GateAndUp<T> in, T* gradient, std::int64_t rows,
                    std::int64_t width, DeviceStream stream) {
  launch(GatedBackwardKernel<T>{activation, hidden_gradient, in, gradient, width}, rows * width, stream);
}

template <class T>
void plain_forward(Activation activation, const T* x, T* hidden, std::int64_t count, DeviceStream stream) {
  launch(PlainForwardKernel<T>{activation, x, hidden}, count, stream);
}

template <class T>
void plain_backward(Activation activation, const T* hidden_gradient, const T* x, T* gradient, std::int64_t count,
                    DeviceStream stream) {
  launch(PlainBackwardKernel<T>{activation, hidden_gradient, x, gradient}, count, stream);
}

}  // namespace reckon::kernels
