// The CPU allocator of libtorch, replaced by one that books every tensor on the thread's memory account.
#pragma once

#include "runtime/train/memory_account.h"

namespace at {
class Tensor;
}

namespace reckon {

/// Installs the allocator for the whole process; call before the first tensor. Idempotent.
void install_counting_allocator();

/// Books the tensor's whole storage under another category, on a device too; a no-op for memory that is nobody's own.
void recategorize(const at::Tensor& tensor, MemoryCategory category);

}  // namespace reckon
