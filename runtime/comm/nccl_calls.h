// The one way an NCCL call is made: check_nccl(ncclX(...), "ncclX", place, communicator).
#pragma once

#include <nccl.h>

#include <string>

#include "runtime/comm/operation.h"
#include "runtime/device/cuda_calls.h"

namespace reckon {

/// NCCL's texts for a result: its name for the kind and, where it has one, its last message.
std::string nccl_text(ncclResult_t result, ncclComm_t communicator = nullptr);

/// Throws RunError unless `result` is ncclSuccess, or ncclInProgress as communicators that do not block answer.
void check_nccl(ncclResult_t result, const char* call, CallPlace place, ncclComm_t communicator = nullptr);

ncclDataType_t nccl_type(ElementType type);
ncclRedOp_t nccl_reduction(Reduction reduction);

/// "2.28.9" of the library that is loaded.
std::string nccl_version();

}  // namespace reckon
