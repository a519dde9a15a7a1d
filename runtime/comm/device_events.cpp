#include "runtime/comm/device_events.h"

#include <cmath>

#include "runtime/comm/board.h"

namespace reckon {
namespace {

constexpr std::int64_t kTieNanoseconds = 1000000000;

}  // namespace

DeviceLane::Store::~Store() {
  for (cudaEvent_t event : free) cudaEventDestroy(event);  // unchecked: nothing can be done about it here
}

DeviceLane::DeviceLane(CallPlace place) : place_(place), store_(std::make_shared<Store>()) {
  store_->place = place;
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags", place_);
  tie_clocks();
}

DeviceLane::~DeviceLane() {
  cudaStreamDestroy(stream_);  // unchecked: as above
}

EventOwner DeviceLane::event() {
  cudaEvent_t fresh = nullptr;
  if (store_->free.empty()) {
    check_cuda(cudaEventCreate(&fresh), "cudaEventCreate", place_);
  } else {
    fresh = store_->free.back();
    store_->free.pop_back();
  }
  return {fresh, [store = store_](cudaEvent_t used) { store->free.push_back(used); }};
}

EventOwner DeviceLane::mark() {
  latest_ = event();
  check_cuda(cudaEventRecord(latest_.get(), stream_), "cudaEventRecord", place_);
  return latest_;
}

void DeviceLane::follow(cudaStream_t other) {
  const EventOwner before = event();
  check_cuda(cudaEventRecord(before.get(), other), "cudaEventRecord", place_);
  check_cuda(cudaStreamWaitEvent(stream_, before.get(), 0), "cudaStreamWaitEvent", place_);
}

bool DeviceLane::happened(const EventOwner& event) const {
  const cudaError_t state = cudaEventQuery(event.get());  // unchecked: "not ready" is an answer
  if (state != cudaErrorNotReady) {
    check_cuda(state, "cudaEventQuery", place_);
    return true;
  }
  cudaGetLastError();  // "not ready" is no error: it must not be found by the next check of a launch
  return false;
}

std::int64_t DeviceLane::moment(const EventOwner& event) const {
  float milliseconds = 0;
  check_cuda(cudaEventElapsedTime(&milliseconds, tie_.get(), event.get()), "cudaEventElapsedTime", place_);
  return tied_at_ + std::llround(static_cast<double>(milliseconds) * 1e6);
}

// The two clocks drift by some parts in a million. An idle lane does what it is given at once.
void DeviceLane::tie_clocks() {
  const std::int64_t now = monotonic_nanoseconds();
  if (tie_ && now - tied_at_ < kTieNanoseconds) return;
  if (latest_ && !happened(latest_)) return;
  const EventOwner tie = event();
  check_cuda(cudaEventRecord(tie.get(), stream_), "cudaEventRecord", place_);
  check_cuda(cudaEventSynchronize(tie.get()), "cudaEventSynchronize", place_);
  tied_at_ = monotonic_nanoseconds();
  tie_ = tie;
}

}  // namespace reckon
