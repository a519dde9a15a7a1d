// elementwise.h for a device. Sums over rows are the callers' (they are library reductions there).
#pragma once

#include "runtime/train/kernels/device/launch.h"
#include "runtime/train/kernels/elementwise.h"

namespace reckon::kernels {

template <class T>
struct AddKernel {
  T* target;
  const T* source;
  RECKON_HOST_DEVICE void operator()(std::int64_t i) const { store(target[i], load(target[i]) + load(source[i])); }
};

template <class T>
struct AccumulateKernel {
  Accumulator<T>* main;
  const T* part;
  RECKON_HOST_DEVICE void operator()(std::int64_t i) const { main[i] += load(part[i]); }
};

template <class T>
struct AddBiasKernel {
  T* x;
  const T* bias;
  std::int64_t width;
  RECKON_HOST_DEVICE void operator()(std::int64_t i) const { store(x[i], load(x[i]) + load(bias[i % width])); }
};

template <class T>
struct GatherRowsKernel {
  const T* table;
  const std::int32_t* tokens;
  T* out;
  std::int64_t width, first, table_rows;
  RECKON_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t index = tokens[i / width] - first;
    out[i] = index >= 0 && index < table_rows ? table[index * width + i % width] : T{};
  }
};

/// One column, in row order: tokens may be equal.
template <class T>
struct ScatterRowsKernel {
  const T* dy;
  const std::int32_t* tokens;
  Accumulator<T>* gradient;
  std::int64_t rows, width, first, table_rows;
  RECKON_HOST_DEVICE void operator()(std::int64_t column) const {
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t index = tokens[row] - first;
      if (index >= 0 && index < table_rows) gradient[index * width + column] += load(dy[row * width + column]);
    }
  }
};

template <class T>
struct CopyRowsKernel {
  T* target;
  std::int64_t target_stride;
  const T* source;
  std::int64_t source_stride, width;
  RECKON_HOST_DEVICE void operator()(std::int64_t i) const {
    target[i / width * target_stride + i % width] = source[i / width * source_stride + i % width];
  }
};

struct ToBfloat16Kernel {
  const float* source;
  BFloat16* target;
  RECKON_HOST_DEVICE void operator()(std::int64_t i) const { store(target[i], source[i]); }
};

template <class T>
void add(T* target, const T* source, std::int64_t count, DeviceStream stream) {
  launch(AddKernel<T>{target, source}, count, stream);
}

template <class T>
void accumulate(Accumulator<T>* main, const T* part, std::int64_t count, DeviceStream stream) {
  launch(AccumulateKernel<T>{main, part}, count, stream);
}

template <class T>
void add_bias(T* x, const T* bias, std::int64_t rows, std::int64_t width, DeviceStream stream) {
  launch(AddBiasKernel<T>{x, bias, width}, rows * width, stream);
}

template <class T>
void gather_rows(const T* table, const std::int32_t* tokens, T* out, std::int64_t rows, std::int64_t width,
                 std::int64_t first, std::int64_t table_rows, DeviceStream stream) {
  launch(GatherRowsKernel<T>{table, tokens, out, width, first, table_rows}, rows * width, stream);
}

template <class T>
void scatter_rows(const T* dy, const std::int32_t* tokens, Accumulator<T>* gradient, std::int64_t rows,
                  std::int64_t width, std::int64_t first, std::int64_t table_rows, DeviceStream stream) {
  launch(ScatterRowsKernel<T>{dy, tokens, gradient, rows, width, first, table_rows}, width, stream);
}

template <class T>
void copy_rows(T* target, std::int64_t target_stride, const T* source, std::int64_t source_stride, std::int64_t rows,
               std::int64_t width, DeviceStream stream) {
  launch(CopyRowsKernel<T>{target, target_stride, source, source_stride, width}, rows * width, stream);
}

inline void to_bfloat16(const float* source, BFloat16* target, std::int64_t count, DeviceStream stream) {
  launch(ToBfloat16Kernel{source, target}, count, stream);
}

}  // namespace reckon::kernels
