// A stand-in for the CUDA runtime and NCCL, for machines without a GPU: "devices" are host memory, streams are threads
// that work off what they are given, NCCL's calls meet between the threads of one process. It knows the functions that
// runtime/comm uses, is as asynchronous as the real libraries (communicators that do not block answer "in progress" and
// start late, sends wait for their receive, mismatched calls never end), refuses pointers that are no device memory,
// and fails on demand.
#pragma once

#include <nccl.h>

#include <cstdint>
#include <string>

namespace reckon::stub {

/// Forgets faults and makes `devices` devices.
void reset(int devices);

/// The `nth` call (from 1, counted from now) of that function by a thread using `device` returns `code` and does
/// nothing.
void fail_call(const std::string& function, int device, int nth, int code);

/// Communicators of that device report the error to ncclCommGetAsyncError from now on.
void report_async_error(int device, ncclResult_t error);

/// What NCCL does on that device from now on never ends, until it is aborted.
void hang(int device);

/// Calls of a function since reset.
std::int64_t calls_of(const std::string& function);
/// Bytes that are allocated on all devices; communicators that are neither destroyed nor aborted.
std::int64_t bytes_in_use();
std::int64_t communicators_in_use();

}  // namespace reckon::stub
