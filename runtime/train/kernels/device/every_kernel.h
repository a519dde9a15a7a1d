// Every kernel of this folder with its types: what a file that defines launch() and launch_rows() instantiates them
// for.
#pragma once

#include "runtime/train/kernels/device/activation.h"
#include "runtime/train/kernels/device/attention_block.h"
#include "runtime/train/kernels/device/cross_entropy.h"
#include "runtime/train/kernels/device/elementwise.h"
#include "runtime/train/kernels/device/norm.h"
#include "runtime/train/kernels/device/optimizer.h"
#include "runtime/train/kernels/device/rope.h"

#define RECKON_ITEM_KERNEL(...) template void launch(const __VA_ARGS__&, std::int64_t, DeviceStream);
#define RECKON_ROW_KERNEL(...) template void launch_rows(const __VA_ARGS__&, std::int64_t, DeviceStream);

#define RECKON_KERNELS_OF_ACCUMULATORS(A)       \
  RECKON_ROW_KERNEL(BlockMaximumKernel<A>)      \
  RECKON_ROW_KERNEL(BlockExponentialsKernel<A>) \
  RECKON_ITEM_KERNEL(ScaleRowsKernel<A>)        \
  RECKON_ITEM_KERNEL(ScoreGradientsKernel<A>)   \
  RECKON_ROW_KERNEL(SumOfSquaresKernel<A>)

#define RECKON_KERNELS_OF_ELEMENTS(T)               \
  RECKON_ITEM_KERNEL(AddKernel<T>)                  \
  RECKON_ITEM_KERNEL(AccumulateKernel<T>)           \
  RECKON_ITEM_KERNEL(AddBiasKernel<T>)              \
  RECKON_ITEM_KERNEL(GatherRowsKernel<T>)           \
  RECKON_ITEM_KERNEL(ScatterRowsKernel<T>)          \
  RECKON_ITEM_KERNEL(CopyRowsKernel<T>)             \
  RECKON_ITEM_KERNEL(GatedForwardKernel<T>)         \
  RECKON_ITEM_KERNEL(GatedBackwardKernel<T>)        \
  RECKON_ITEM_KERNEL(PlainForwardKernel<T>)         \
  RECKON_ITEM_KERNEL(PlainBackwardKernel<T>)        \
  RECKON_ROW_KERNEL(RowMaximumKernel<T>)            \
  RECKON_ROW_KERNEL(ExponentialSumKernel<T>)        \
  RECKON_ITEM_KERNEL(TargetLogitKernel<T>)          \
  RECKON_ITEM_KERNEL(FinishLossKernel<T>)           \
  RECKON_ITEM_KERNEL(CrossEntropyGradientKernel<T>) \
  RECKON_ITEM_KERNEL(RotateKernel<T>)               \
  RECKON_ROW_KERNEL(RmsNormForwardKernel<T>)        \
  RECKON_ROW_KERNEL(RmsNormBackwardKernel<T>)       \
  RECKON_ROW_KERNEL(LayerNormForwardKernel<T>)      \
  RECKON_ROW_KERNEL(LayerNormBackwardKernel<T>)     \
  RECKON_ROW_KERNEL(FoldRowsKernel<T>)              \
  RECKON_ROW_KERNEL(RowProductsKernel<T>)           \
  RECKON_ITEM_KERNEL(SumPartsKernel<T>)             \
  RECKON_ITEM_KERNEL(CutOffRowsKernel<T>)           \
  RECKON_ITEM_KERNEL(WidenRowsKernel<T>)            \
  RECKON_ITEM_KERNEL(NarrowRowsKernel<T>)

#define RECKON_EVERY_DEVICE_KERNEL       \
  RECKON_KERNELS_OF_ACCUMULATORS(float)  \
  RECKON_KERNELS_OF_ACCUMULATORS(double) \
  RECKON_KERNELS_OF_ELEMENTS(float)      \
  RECKON_KERNELS_OF_ELEMENTS(double)     \
  RECKON_KERNELS_OF_ELEMENTS(BFloat16)   \
  RECKON_ITEM_KERNEL(ToBfloat16Kernel)   \
  RECKON_ITEM_KERNEL(AdamwKernel)        \
  RECKON_ITEM_KERNEL(SgdKernel)          \
  RECKON_ROW_KERNEL(NarrowAdamwKernel)
