#include "runtime/train/kernels/activation.h"

#include "runtime/train/kernels/activation_core.h"

namespace reckon::kernels {
namespace {

template <class F, class T>
RECKON_CPU_CLONES void gated_forward_loop(GateAndUp<T> in, T* hidden, std::int64_t rows, std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row, hidden += width) {
    const T* gate = in.gate + row * in.gate_stride;
    const T* up = in.up + row * in.up_stride;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) store(hidden[i], F::at(load(gate[i])).value * load(up[i]));
  }
}

template <class F, class T>
RECKON_CPU_CLONES void gated_backward_loop(const T* hidden_gradient, GateAndUp<T> in, T* gradient, std::int64_t rows,
                                           std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* d = hidden_gradient + row * width;
    const T* gates = in.gate + row * in.gate_stride;
    const T* ups = in.up + row * in.up_stride;
    T* gate_gradient = gradient + row * 2 * width;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) {
      const auto f = F::at(load(gates[i]));
      const auto up = load(ups[i]), outer = load(d[i]);
      store(gate_gradient[i], outer * up * f.slope);
      store(gate_gradient[width + i], outer * f.value);
    }
  }
}

template <class F, class T>
RECKON_CPU_CLONES void plain_forward_loop(const T* x, T* hidden, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) store(hidden[i], F::at(load(x[i])).value);
}

template <class F, class T>
RECKON_CPU_CLONES void plain_backward_loop(const T* hidden_gradient, const T* x, T* gradient, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) store(gradient[i], load(hidden_gradient[i]) * F::at(load(x[i])).slope);
}

/// Calls `run` with the function object of `activation`.
template <class Run>
void with_function(Activation activation, Run run) {
  switch (activation) {
    case Activation::silu: return run(Silu{});
    case Activation::gelu: return run(Gelu{});
    case Activation::relu: return run(Relu{});
    case Activation::squared_relu: return run(SquaredRelu{});
  }
}

}  // namespace

template <class T>
void gated_forward(Activation activation, GateAndUp<T> in, T* hidden, std::int64_t rows, std::int64_t width) {
  with_function(activation, [&]<class F>(F) { gated_forward_loop<F>(in, hidden, rows, width); });
}

template <class T>
void gated_backward(Activation activation, const T* hidden_gradient, GateAndUp<T> in, T* gradient, std::int64_t rows,
                    std::int64_t width) {
  with_function(activation, [&]<class F>(F) { gated_backward_loop<F>(hidden_gradient, in, gradient, rows, width); });
}

template <class T>
void plain_forward(Activation activation, const T* x, T* hidden, std::int64_t count) {
  with_function(activation, [&]<class F>(F) { plain_forward_loop<F>(x, hidden, count); });
}

template <class T>
void plain_backward(Activation activation, const T* hidden_gradient, const T* x, T* gradient, std::int64_t count) {
  with_function(activation, [&]<class F>(F) { plain_backward_loop<F>(hidden_gradient, x, gradient, count); });
}

#define RECKON_INSTANTIATE(T)                                                                          \
  template void gated_forward<T>(Activation, GateAndUp<T>, T*, std::int64_t, std::int64_t);            \
  template void gated_backward<T>(Activation, const T*, GateAndUp<T>, T*, std::int64_t, std::int64_t); \
  template void plain_forward<T>(Activation, const T*, T*, std::int64_t);                              \
  template void plain_backward<T>(Activation, const T*, const T*, T*, std::int64_t)
RECKON_INSTANTIATE(float);
RECKON_INSTANTIATE(double);
RECKON_INSTANTIATE(BFloat16);

}  // namespace reckon::kernels
