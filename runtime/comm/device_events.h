// A stream with its events: when work on it was done, on the host's clock.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/device/cuda_calls.h"

namespace reckon {

/// An event that returns to its lane's store when nobody holds it any more.
using EventOwner = std::shared_ptr<CUevent_st>;

class DeviceLane {
 public:
  explicit DeviceLane(CallPlace place);
  ~DeviceLane();
  DeviceLane(const DeviceLane&) = delete;
  DeviceLane& operator=(const DeviceLane&) = delete;

  cudaStream_t stream() const { return stream_; }

  /// An event recorded behind the work issued so far.
  EventOwner mark();
  /// Work issued from here on waits for what `other` has been given so far.
  void follow(cudaStream_t other);
  /// True once the event has happened; throws RunError for a failed device.
  bool happened(const EventOwner& event) const;
  /// Nanoseconds of monotonic_nanoseconds() at which a past event happened.
  std::int64_t moment(const EventOwner& event) const;

  /// Call it before new work: ties the device's clock to the host's again, where the lane is idle and it has been long.
  void tie_clocks();

 private:
  struct Store {  // outlives the lane while events are held
    CallPlace place;
    std::vector<cudaEvent_t> free;
    ~Store();
  };
  EventOwner event();

  CallPlace place_;
  cudaStream_t stream_ = nullptr;
  std::shared_ptr<Store> store_;
  EventOwner latest_;  // the last mark
  EventOwner tie_;     // happened at tied_at_
  std::int64_t tied_at_ = 0;
};

}  // namespace reckon
