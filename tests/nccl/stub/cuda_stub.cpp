#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/nccl/stub/device_stub.h"
#include "tests/nccl/stub/faults.h"

namespace {

std::int64_t now() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

/// One recording of an event: the moment it happened, 0 before.
struct Mark {
  std::mutex mutex;
  std::condition_variable changed;
  std::int64_t moment = 0;

  void happen() {
    const std::lock_guard lock(mutex);
    moment = now();
    changed.notify_all();
  }
  bool happened() {
    const std::lock_guard lock(mutex);
    return moment != 0;
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return moment != 0; });
  }
};

}  // namespace

struct CUevent_st {
  std::shared_ptr<Mark> mark;
};

struct CUstream_st {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> work;
  bool stop = false;
  std::thread worker{[this] { run(); }};

  void run() {
    while (true) {
      std::function<void()> next;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return stop || !work.empty(); });
        if (work.empty()) return;
        next = std::move(work.front());
        work.pop_front();
      }
      next();
    }
  }
  ~CUstream_st() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    changed.notify_all();
    worker.join();
  }
};

namespace reckon::stub {
namespace {

struct Fault {
  std::string function;
  int device, nth, code;
};

struct State {
  std::mutex mutex;
  int devices = 8;
  std::vector<Fault> faults;
  std::map<int, int> async_errors;
  std::map<int, bool> hangs;
  std::map<std::string, std::int64_t> calls;
  std::map<const std::byte*, std::size_t> memory;
  std::map<CUstream_st*, int> streams;  // with their devices
  std::int64_t communicators = 0;
};

State& state() {
  static State* const all = new State;  // never destroyed: threads may outlive main's statics
  return *all;
}

thread_local int device_of_thread = 0;
thread_local cudaError_t last_error = cudaSuccess;

cudaError_t failed(const char* function) {
  const int code = fault(function);
  if (code != 0) last_error = static_cast<cudaError_t>(code);
  return static_cast<cudaError_t>(code);
}

}  // namespace

void reset(int devices) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  all.devices = devices;
  all.faults.clear();
  all.async_errors.clear();
  all.hangs.clear();
  all.calls.clear();
}

void fail_call(const std::string& function, int device, int nth, int code) {
  const std::lock_guard lock(state().mutex);
  state().faults.push_back({function, device, nth, code});
}

void report_async_error(int device, ncclResult_t error) {
  const std::lock_guard lock(state().mutex);
  state().async_errors[device] = error;
}

void hang(int device) {
  const std::lock_guard lock(state().mutex);
  state().hangs[device] = true;
}

/// Waits for all that the streams of the thread's device have been given, as cudaFree does.
void drain_device() {
  std::vector<std::shared_ptr<Mark>> marks;
  {
    const std::lock_guard lock(state().mutex);
    for (const auto& [stream, device] : state().streams) {
      if (device != device_of_thread) continue;
      marks.push_back(std::make_shared<Mark>());
      enqueue(stream, [mark = marks.back()] { mark->happen(); });
    }
  }
  for (const auto& mark : marks) mark->wait();
}

std::int64_t calls_of(const std::string& function) {
  const std::lock_guard lock(state().mutex);
  return state().calls[function];
}

std::int64_t bytes_in_use() {
  const std::lock_guard lock(state().mutex);
  std::int64_t bytes = 0;
  for (const auto& [address, size] : state().memory) bytes += static_cast<std::int64_t>(size);
  return bytes;
}

std::int64_t communicators_in_use() {
  const std::lock_guard lock(state().mutex);
  return state().communicators;
}

int fault(const char* function) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  ++all.calls[function];
  for (Fault& one : all.faults)
    if (one.function == function && one.device == device_of_thread && --one.nth == 0) return one.code;
  return 0;
}

int current_device() {
  return device_of_thread;
}

int async_error(int device) {
  const std::lock_guard lock(state().mutex);
  const auto error = state().async_errors.find(device);
  return error == state().async_errors.end() ? 0 : error->second;
}

bool hangs(int device) {
  const std::lock_guard lock(state().mutex);
  return state().hangs[device];
}

bool is_device_memory(const void* address, std::size_t bytes) {
  if (bytes == 0) return true;
  const std::lock_guard lock(state().mutex);
  const auto* first = static_cast<const std::byte*>(address);
  auto block = state().memory.upper_bound(first);
  if (block == state().memory.begin()) return false;
  --block;
  return first + bytes <= block->first + block->second;
}

void count_communicators(int change) {
  const std::lock_guard lock(state().mutex);
  state().communicators += change;
}

void enqueue(CUstream_st* stream, std::function<void()> work) {
  if (stream == nullptr) return work();
  {
    const std::lock_guard lock(stream->mutex);
    stream->work.push_back(std::move(work));
  }
  stream->changed.notify_all();
}

}  // namespace reckon::stub

using namespace reckon::stub;

// --- the CUDA runtime ---------------------------------------------------------------------------------------------

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  if (const cudaError_t error = failed("cudaGetDeviceCount")) return error;
  *count = state().devices;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (const cudaError_t error = failed("cudaSetDevice")) return error;
  if (device < 0 || device >= state().devices) return last_error = cudaErrorInvalidDevice;
  device_of_thread = device;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  if (const cudaError_t error = failed("cudaDeviceGetPCIBusId")) return error;
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0", device);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* all) {
  if (const cudaError_t error = failed("cudaMemGetInfo")) return error;
  *all = std::size_t{1} << 34;
  *free = *all - static_cast<std::size_t>(bytes_in_use());
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** address, size_t bytes) {
  if (const cudaError_t error = failed("cudaMalloc")) return error;
  *address = std::malloc(bytes == 0 ? 1 : bytes);
  const std::lock_guard lock(state().mutex);
  state().memory[static_cast<std::byte*>(*address)] = bytes;
  return cudaSuccess;
}

cudaError_t cudaFree(void* address) {
  if (const cudaError_t error = failed("cudaFree")) return error;
  if (address == nullptr) return cudaSuccess;
  drain_device();
  {
    const std::lock_guard lock(state().mutex);
    if (state().memory.erase(static_cast<std::byte*>(address)) == 0) return last_error = cudaErrorInvalidValue;
  }
  std::free(address);
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  if (const cudaError_t error = failed("cudaPointerGetAttributes")) return error;
  *attributes = {};
  attributes->type = is_device_memory(address, 1) ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}

cudaError_t cudaMemset(void* address, int value, size_t bytes) {
  if (const cudaError_t error = failed("cudaMemset")) return error;
  if (!is_device_memory(address, bytes)) return last_error = cudaErrorInvalidValue;
  std::memset(address, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  if (const cudaError_t error = failed("cudaMemcpy")) return error;
  if (bytes > 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  if (const cudaError_t error = failed("cudaMemcpyAsync")) return error;
  if (!is_device_memory(to, bytes) || !is_device_memory(from, bytes)) return last_error = cudaErrorInvalidValue;
  enqueue(stream, [=] { std::memmove(to, from, bytes); });
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  if (const cudaError_t error = failed("cudaLaunchHostFunc")) return error;
  enqueue(stream, [=] { function(argument); });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  if (const cudaError_t error = failed("cudaStreamCreateWithFlags")) return error;
  *stream = new CUstream_st;
  const std::lock_guard lock(state().mutex);
  state().streams[*stream] = current_device();
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (const cudaError_t error = failed("cudaStreamDestroy")) return error;
  {
    const std::lock_guard lock(state().mutex);
    state().streams.erase(stream);
  }
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const cudaError_t error = failed("cudaStreamSynchronize")) return error;
  const auto mark = std::make_shared<Mark>();
  enqueue(stream, [mark] { mark->happen(); });
  mark->wait();
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (const cudaError_t error = failed("cudaStreamWaitEvent")) return error;
  if (event->mark) enqueue(stream, [mark = event->mark] { mark->wait(); });
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  if (const cudaError_t error = failed("cudaEventCreate")) return error;
  *event = new CUevent_st;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (const cudaError_t error = failed("cudaEventDestroy")) return error;
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const cudaError_t error = failed("cudaEventRecord")) return error;
  event->mark = std::make_shared<Mark>();
  enqueue(stream, [mark = event->mark] { mark->happen(); });
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t error = failed("cudaEventQuery")) return error;
  if (!event->mark || event->mark->happened()) return cudaSuccess;
  return last_error = cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const cudaError_t error = failed("cudaEventSynchronize")) return error;
  if (event->mark) event->mark->wait();
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  if (const cudaError_t error = failed("cudaEventElapsedTime")) return error;
  if (!from->mark || !to->mark) return last_error = cudaErrorInvalidResourceHandle;
  if (!from->mark->happened() || !to->mark->happened()) return last_error = cudaErrorNotReady;
  *milliseconds = static_cast<float>(static_cast<double>(to->mark->moment - from->mark->moment) * 1e-6);
  return cudaSuccess;
}

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "an error of the stub";
}

const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaErrorStub";
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

}  // extern "C"
