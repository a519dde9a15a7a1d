#include "runtime/train/ops/copy_into.h"

#include <ATen/ATen.h>

#include "runtime/train/kernels/device/elementwise.h"
#include "runtime/train/ops/dispatch.h"

namespace reckon {

void copy_into(const at::Tensor& target, const at::Tensor& source) {
  with_element_type(target, [&]<class T>(T, auto... place) {
    kernels::copy_rows<T>(pointer<T>(target), target.stride(0), pointer<const T>(source), source.stride(0),
                          source.size(0), source.size(1), place...);
  });
}

}  // namespace reckon
