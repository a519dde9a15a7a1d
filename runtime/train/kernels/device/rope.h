// rope.h for a device.
#pragma once

#include "runtime/train/kernels/device/launch.h"
#include "runtime/train/kernels/rope.h"

namespace reckon::kernels {

/// One pair of elements: item = (row * heads + head) * rotated / 2 + pair.
template <class T>
struct RotateKernel {
  using A = Accumulator<T>;
  T* rows_of_heads;
  std::int64_t stride, heads, head_dim, half;
  const std::int32_t* positions;
  const A *cosine, *sine;
  A sign;
  RECKON_HOST_DEVICE void operator()(std::int64_t item) const {
    const std::int64_t pair = item % half, head = item / half % heads, row = item / half / heads;
    T* const first = rows_of_heads + row * stride + head * head_dim + pair;
    T* const second = first + half;
    const std::int64_t angle = positions[row] * half + pair;
    const A a = load(*first), b = load(*second), c = cosine[angle], s = sign * sine[angle];
    store(*first, a * c - b * s);
    store(*second, b * c + a * s);
  }
};

template <class T>
void rotate(T* rows_of_heads, std::int64_t rows, std::int64_t stride, std::int64_t heads, std::int64_t head_dim,
            std::int64_t rotated, const std::int32_t* positions, const Accumulator<T>* cosine,
            const Accumulator<T>* sine, int direction, DeviceStream stream) {
  const std::int64_t half = rotated / 2;
  launch(RotateKernel<T>{rows_of_heads, stride, heads, head_dim, half, positions, cosine, sine,
                         static_cast<Accumulator<T>>(direction)},
         rows * heads * half, stream);
}

}  // namespace reckon::kernels
