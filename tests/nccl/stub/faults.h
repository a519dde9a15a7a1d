// What the stub's functions share: faults on demand, devices of threads, checked pointers.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace reckon::stub {

/// Counts a call of `function` by this thread's device; the code it must fail with, or 0.
int fault(const char* function);

int current_device();
/// The error that this device's communicators report, or 0.
int async_error(int device);
bool hangs(int device);

/// Whether [address, address + bytes) is device memory.
bool is_device_memory(const void* address, std::size_t bytes);

void count_communicators(int change);

/// Queues work on a stream (null: runs it now).
void enqueue(struct CUstream_st* stream, std::function<void()> work);

}  // namespace reckon::stub
