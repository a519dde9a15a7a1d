#include "runtime/train/ops/matrix_product.h"

#include <ATen/ATen.h>
#include <ATen/cpu/Utils.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "runtime/train/kernels/device/elementwise.h"
#include "runtime/train/memory_account.h"
#include "runtime/train/ops/dispatch.h"

namespace reckon {
namespace {

double fastest_product_seconds(at::ScalarType type) {
  const at::Tensor a = at::ones({256, 256}, type), b = at::ones({256, 256}, type);
  at::Tensor c = at::empty({256, 256}, type);
  double fastest = std::numeric_limits<double>::infinity();
  for (int repeat = 0; repeat < 8; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    at::mm_out(c, a, b);
    fastest = std::min(fastest, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return fastest;
}

bool has_bfloat16_instructions() {
  const auto capabilities = at::cpu::get_cpu_capabilities();
  for (const char* name : {"avx512_bf16", "amx_bf16"}) {
    const auto found = capabilities.find(name);
    if (found != capabilities.end() && found->second.isBool() && found->second.toBool()) return true;
  }
  return false;
}

bool through_fp32(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kBFloat16 && !tensor.is_cuda() && !native_bfloat16_products();
}

/// out = a * b. What the library packs operands into (oneDNN for BF16, at most 2 MiB whatever the shapes) is on an
/// account of its own: MKL's for FP32 does not come from this allocator either.
void library_product(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
  static MemoryAccount& library = *new MemoryAccount;  // never destroyed: threads may end after it
  const AccountScope scope(library);
  at::mm_out(out, a, b);
}

/// out = a * b, by way of FP32 copies where that is faster.
void product(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out) {
  at::Tensor target = out;
  if (through_fp32(a)) target.copy_(at::mm(a.to(at::kFloat), b.to(at::kFloat)));
  else library_product(a, b, target);
}

}  // namespace

/// A timing alone would not do: a core taken away while it runs would send this rank, and no other, through FP32.
bool native_bfloat16_products() {
  static const bool native = [] {
    if (has_bfloat16_instructions()) return true;
    MemoryAccount probe;  // the probe's tensors are no part of the rank's memory
    const AccountScope scope(probe);
    return fastest_product_seconds(at::kBFloat16) < fastest_product_seconds(at::kFloat);
  }();
  return native;
}

void linear_forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& y) {
  product(x, weight.t(), y);
}

void linear_input_gradient(const at::Tensor& dy, const at::Tensor& weight, const at::Tensor& dx) {
  product(dy, weight, dx);
}

void linear_weight_gradient(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& gradient) {
  at::Tensor target = gradient;
  if (dy.scalar_type() == gradient.scalar_type()) {
    at::addmm_out(target, gradient, dy.t(), x);
  } else if (through_fp32(dy)) {
    at::addmm_out(target, gradient, dy.to(at::kFloat).t(), x.to(at::kFloat));
  } else {
    at::Tensor part = at::empty({dy.size(1), x.size(1)}, dy.options());
    library_product(dy.t(), x, part);
    with_element_type(part, [&]<class T>(T, auto... place) {
      if constexpr (std::is_same_v<T, kernels::BFloat16>)
        kernels::accumulate<T>(pointer<float>(gradient), pointer<const T>(part), part.numel(), place...);
    });
  }
}

}  // namespace reckon
