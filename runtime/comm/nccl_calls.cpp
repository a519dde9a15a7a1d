#include "runtime/comm/nccl_calls.h"

#include <fmt/format.h>

#include "plan/errors.h"

namespace reckon {

std::string nccl_text(ncclResult_t result, ncclComm_t communicator) {
  std::string text = fmt::format("{} (NCCL error {})", ncclGetErrorString(result), static_cast<int>(result));
  const char* last = ncclGetLastError(communicator);
  if (last != nullptr && *last != 0) text += fmt::format("; {}", last);
  return text;
}

void check_nccl(ncclResult_t result, const char* call, CallPlace place, ncclComm_t communicator) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw RunError(fmt::format("{} failed{}: {}", call, describe(place), nccl_text(result, communicator)));
}

ncclDataType_t nccl_type(ElementType type) {
  switch (type) {
    case ElementType::fp64: return ncclFloat64;
    case ElementType::fp32: return ncclFloat32;
    case ElementType::bf16: return ncclBfloat16;
    case ElementType::int64: return ncclInt64;
    case ElementType::int32: return ncclInt32;
    case ElementType::uint8: return ncclUint8;
  }
  return ncclUint8;
}

ncclRedOp_t nccl_reduction(Reduction reduction) {
  return reduction == Reduction::sum ? ncclSum : ncclMax;
}

std::string nccl_version() {
  int code = 0;
  check_nccl(ncclGetVersion(&code), "ncclGetVersion", {});
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

}  // namespace reckon
