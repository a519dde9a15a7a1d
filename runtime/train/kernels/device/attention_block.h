// attention_block.h for a device.
#pragma once

#include "runtime/train/kernels/attention_block.h"
#include "runtime/train/kernels/device/launch.h"

namespace reckon::kernels {

/// Columns that a row sees.
template <class A>
RECKON_HOST_DEVICE std::int64_t columns_seen(const ScoreBlock<A>& block, std::int64_t row) {
  const std::int64_t seen = block.seen + row;
  return seen < 0 ? 0 : seen > block.width ? block.width : seen;
}

/// First half of softmax_block: the rows' maxima, and what results from before are multiplied by.
template <class A>
struct BlockMaximumKernel {
  ScoreBlock<A> block;
  A *maximum, *rescale;
  std::int64_t width;
  static RECKON_HOST_DEVICE Found<A> nothing() { return {-A(INFINITY), A(0)}; }
  static RECKON_HOST_DEVICE Found<A> join(Found<A> a, Found<A> b) {
    return {a.first < b.first ? b.first : a.first, A(0)};
  }
  RECKON_HOST_DEVICE A begin(std::int64_t row) const { return maximum[row]; }
  RECKON_HOST_DEVICE void visit(A, std::int64_t row, std::int64_t column, Found<A>& found) const {
    if (column >= columns_seen(block, row)) return;
    const A score = block.scores[row * block.stride + column];
    found.first = score > found.first ? score : found.first;
  }
  RECKON_HOST_DEVICE void finish(A before, std::int64_t row, Found<A> found, int lane) const {
    if (lane != 0) return;
    const A largest = block.scale * found.first;
    const A now = columns_seen(block, row) > 0 && before < largest ? largest : before;
    rescale[row] = before == now ? A(1) : exponential(before - now);
    maximum[row] = now;
  }
};

/// Second half: exponentials and their sums.
template <class A>
struct BlockExponentialsKernel {
  ScoreBlock<A> block;
  const A *maximum, *rescale;
  A* sum;
  std::int64_t width;
  static RECKON_HOST_DEVICE Found<A> nothing() { return {A(0), A(0)}; }
  static RECKON_HOST_DEVICE Found<A> join(Found<A> a, Found<A> b) { return {a.first + b.first, A(0)}; }
  RECKON_HOST_DEVICE NoContext begin(std::int64_t) const { return {}; }
  RECKON_HOST_DEVICE void visit(NoContext, std::int64_t row, std::int64_t column, Found<A>& found) const {
    A& score = block.scores[row * block.stride + column];
    score = column < columns_seen(block, row) ? exponential(block.scale * score - maximum[row]) : A(0);
    found.first += score;
  }
  RECKON_HOST_DEVICE void finish(NoContext, std::int64_t row, Found<A> found, int lane) const {
    if (lane == 0) sum[row] = sum[row] * rescale[row] + found.first;
  }
};

template <class A>
struct ScaleRowsKernel {
  A* x;
  const A* factor;
  std::int64_t width;
  RECKON_HOST_DEVICE void operator()(std::int64_t i) const { x[i] *= factor[i / width]; }
};

template <class T>
struct FoldRowsKernel {
  using A = Accumulator<T>;
  T* output;
  std::int64_t stride;
  A* log_sum_exp;
  const A *part, *maximum, *sum;
  std::int64_t width;
  static RECKON_HOST_DEVICE Found<A> nothing() { return {A(0), A(0)}; }
  static RECKON_HOST_DEVICE Found<A> join(Found<A> a, Found<A>) { return a; }
  RECKON_HOST_DEVICE A begin(std::int64_t row) const { return log_sum_exp[row]; }
  RECKON_HOST_DEVICE void visit(A, std::int64_t, std::int64_t, Found<A>&) const {}
  RECKON_HOST_DEVICE void finish(A before, std::int64_t row, Found<A>, int lane) const {
    const A added = maximum[row] + std::log(sum[row]);
    const bool is_first = before == -A(INFINITY);
    const A larger = before < added ? added : before, distance = before < added ? added - before : before - added;
    const A after = is_first ? added : larger + std::log1p(std::exp(-distance));
    const A keep = is_first ? A(0) : std::exp(before - after);
    const A take = is_first ? A(1) / sum[row] : std::exp(added - after) / sum[row];
    T* const target = output + row * stride;
    for (std::int64_t i = lane; i < width; i += kLanes) {
      const A more = part[row * width + i] * take;
      store(target[i], is_first ? more : load(target[i]) * keep + more);
    }
    if (lane == 0) log_sum_exp[row] = after;
  }
};

template <class A>
struct ScoreGradientsKernel {
  ScoreBlock<A> block;
  A* products;
  const A *log_sum_exp, *delta;
  RECKON_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t row = i / block.width, column = i % block.width, place = row * block.stride + column;
    const bool seen = column < columns_seen(block, row);
    const A p = seen ? exponential(block.scale * block.scores[place] - log_sum_exp[row]) : A(0);
    block.scores[place] = p;
    products[place] = seen ? p * (products[place] - delta[row]) * block.scale : A(0);
  }
};

/// Row = head * rows + row of the tensors.
template <class T>
struct RowProductsKernel {
  using A = Accumulator<T>;
  const T *gradient, *output;
  std::int64_t gradient_stride, output_stride, rows, width;
  A* delta;
  static RECKON_HOST_DEVICE Found<A> nothing() { return {A(0), A(0)}; }
  static RECKON_HOST_DEVICE Found<A> join(Found<A> a, Found<A> b) { return {a.first + b.first, A(0)}; }
  RECKON_HOST_DEVICE NoContext begin(std::int64_t) const { return {}; }
  RECKON_HOST_DEVICE void visit(NoContext, std::int64_t place, std::int64_t i, Found<A>& found) const {
    const std::int64_t head = place / rows, row = place % rows, column = head * width + i;
    found.first += load(gradient[row * gradient_stride + column]) * load(output[row * output_stride + column]);
  }
  RECKON_HOST_DEVICE void finish(NoContext, std::int64_t place, Found<A> found, int lane) const {
    if (lane == 0) delta[place] = found.first;
  }
};

template <class T>
struct SumPartsKernel {
  T* target;
  const T* source;
  std::int64_t target_stride, source_stride, part_stride, parts, rest, width;
  RECKON_HOST_DEVICE void operator()(std::int64_t i) const {
    const T* const first = source + i / width * source_stride + i % width;
    Accumulator<T> sum = load(*first);
    for (std::int64_t part = 1; part < parts; ++part) sum += load(first[part * part_stride]);
    for (std::int64_t part = 0; rest > 0 && part < parts; ++part) sum += load(first[part * part_stride + rest]);
    store(target[i / width * target_stride + i % width], sum);
  }
};

template <class T>
struct CutOffRowsKernel {
  const Accumulator<T>* source;
  const T* rounded;
  T* out;
  std::int64_t source_stride, rounded_stride, out_stride, width;
  RECKON_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t row = i / width, column = i % width;
    store(out[row * out_stride + column],
          source[row * source_stride + column] - load(rounded[row * rounded_stride + column]));
  }
};

template <class T>
struct WidenRowsKernel {
  const T* source;
  std::int64_t stride;
  Accumulator<T>* target;
  std::int64_t width;
  RECKON_HOST_DEVICE void operator()(std::int64_t i) const { target[i] = load(source[i / width * stride + i % width]); }
};

template <class T>
struct NarrowRowsKernel {
  const Accumulator<T>* source;
  std::int64_t source_stride;
  T* target;
  std::int64_t stride, width;
  RECKON_HOST_DEVICE void operator()(std::int64_t i) const {
    store(target[i / width * stride + i % width], source[i / width * source_stride + i % width]);
  }
};

template <class A>
void softmax_block(const ScoreBlock<A>& block, A* maximum, A* sum, A* rescale, DeviceStream stream) {
  launch_rows(BlockMaximumKernel<A>{block, maximum, rescale, block.width}, block.rows, stream);
  launch_rows(BlockExponentialsKernel<A>{block, maximum, rescale, sum, block.width}, block.rows, stream);
}

template <class A>
void scale_rows(A* x, std::int64_t rows, std::int64_t width, const A* factor, DeviceStream stream) {
  launch(ScaleRowsKernel<A>{x, factor, width}, rows * width, stream);
}

template <class T>
void fold_rows(T* output, std::int64_t stride, Accumulator<T>* log_sum_exp, const Accumulator<T>* part,
               std::int64_t rows, std::int64_t width, const Accumulator<T>* maximum, const Accumulator<T>* sum,
               DeviceStream stream) {
  launch_rows(FoldRowsKernel<T>{output, stride, log_sum_exp, part, maximum, sum, width}, rows, stream);
}

template <class A>
void score_gradients(const ScoreBlock<A>& block, A* products, const A* log_sum_exp, const A* delta,
                     DeviceStream stream) {
  launch(ScoreGradientsKernel<A>{block, products, log_sum_exp, delta}, block.rows * block.width, stream);
}

template <class T>
void row_products(const T* gradient, std::int64_t gradient_stride, const T* output, std::int64_t output_stride,
                  std::int64_t rows, std::int64_t heads, std::int64_t head_dim, Accumulator<T>* delta,
                  DeviceStream stream) {
  launch_rows(RowProductsKernel<T>{gradient, output, gradient_stride, output_stride, rows, head_dim, delta},
              rows * heads, stream);
}

template <class T>
void sum_parts(T* target, std::int64_t target_stride, const T* source, std::int64_t source_stride,
               std::int64_t part_stride, std::int64_t parts, std::int64_t rest, std::int64_t rows, std::int64_t width,
               DeviceStream stream) {
  launch(SumPartsKernel<T>{target, source, target_stride, source_stride, part_stride, parts, rest, width}, rows * width,
         stream);
}

template <class T>
void cut_off_rows(const Accumulator<T>* source, std::int64_t source_stride, const T* rounded,
                  std::int64_t rounded_stride, T* rest, std::int64_t rest_stride, std::int64_t rows, std::int64_t width,
                  DeviceStream stream) {
  launch(CutOffRowsKernel<T>{source, rounded, rest, source_stride, rounded_stride, rest_stride, width}, rows * width,
         stream);
}

template <class T>
void widen_rows(const T* source, std::int64_t stride, Accumulator<T>* target, std::int64_t rows, std::int64_t width,
                DeviceStream stream) {
  launch(WidenRowsKernel<T>{source, stride, target, width}, rows * width, stream);
}

template <class T>
void narrow_rows(const Accumulator<T>* source, std::int64_t source_stride, T* target, std::int64_t stride,
                 std::int64_t rows, std::int64_t width, DeviceStream stream) {
  launch(NarrowRowsKernel<T>{source, source_stride, target, stride, width}, rows * width, stream);
}

}  // namespace reckon::kernels
