#include "plan/errors.h"
#include "runtime/quant/quantize_cuda.h"

namespace reckon {
namespace {

[[noreturn]] void throw_absent() {
  throw RunError("this build has no CUDA kernels; configure with the preset gpu (RECKON_CUDA=ON)");
}

}  // namespace

bool cuda_quantization_is_built_in() {
  return false;
}

void quantize_cuda(const float*, std::int64_t, Storage, const QuantizeOptions&, std::byte*, void*) {
  throw_absent();
}
void quantize_cuda(const Bf16Bits*, std::int64_t, Storage, const QuantizeOptions&, std::byte*, void*) {
  throw_absent();
}
void dequantize_cuda(const std::byte*, Storage, float*, std::int64_t, void*) {
  throw_absent();
}
void dequantize_cuda(const std::byte*, Storage, Bf16Bits*, std::int64_t, void*) {
  throw_absent();
}
void dequantize_add_cuda(const std::byte*, Storage, float*, std::int64_t, void*) {
  throw_absent();
}
void sum_and_quantize_cuda(const std::byte*, std::int64_t, int, Storage, float*, std::int64_t, const QuantizeOptions&,
                           std::byte*, void*) {
  throw_absent();
}
void accumulate_cuda(std::byte*, Storage, float*, std::int64_t, const QuantizeOptions&, void*) {
  throw_absent();
}

}  // namespace reckon
