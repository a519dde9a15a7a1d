// The blocks that libtorch's caching allocator has given out, each booked on the account and category of the thread
// that asked for it. Sizes are what was asked for, as on CPUs; what the allocator adds is its slack.
#pragma once

#include <cstddef>

#include "plan/memory_category.h"

namespace reckon {

/// Watches the allocator from now on, once for the process.
void count_device_memory();

/// Throws what this thread's last allocation broke, a limit: nothing may be thrown while the allocator is at work.
void throw_broken_limit();

/// Books the block at `address` of a device under another category; nothing for an address that is no block's.
void recategorize_device_block(int device, const void* address, MemoryCategory category);

}  // namespace reckon
