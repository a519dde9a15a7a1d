// What all NCCL groups of one rank share: its device, two lanes, the rendezvous, and the watchdog that ends the run
// when NCCL reports an error or a failure comes from elsewhere.
//
// A lane is a stream with one NCCL communicator per group on it: collectives go through one, messages through the
// other. All groups of a rank share them, so a rank's calls have one order per lane, whatever the groups; that is what
// keeps several communicators on a device from waiting for each other, and allows groups to share their resources
// (splitShare). The caller's thread alone issues; the watchdog only asks for errors and aborts.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/comm/device_events.h"
#include "runtime/comm/nccl_calls.h"
#include "runtime/comm/rendezvous.h"

namespace reckon {

enum class LaneKind { collectives, messages };

/// One NCCL communicator. `handle` must not be used after `aborted`, and only while NcclRank::issuing is held.
struct LaneGroup {
  ncclComm_t handle = nullptr;
  std::string group;  // name in messages
  bool aborted = false;
  AnnouncedCall last;  // the latest call on it, for errors that come later
};

class NcclRank {
 public:
  /// `device` is made current in the calling thread.
  NcclRank(int rank, int device, std::shared_ptr<Rendezvous> rendezvous, CommunicatorOptions options);
  /// Destroys the communicators, or aborts them after a failure.
  ~NcclRank();
  NcclRank(const NcclRank&) = delete;
  NcclRank& operator=(const NcclRank&) = delete;

  CallPlace place() const { return {rank_, device_}; }
  const CommunicatorOptions& options() const { return options_; }
  Rendezvous& rendezvous() { return *rendezvous_; }
  DeviceLane& lane(LaneKind kind) { return kind == LaneKind::collectives ? collectives_ : messages_; }

  /// Held while NCCL is called, so that the watchdog aborts between calls only.
  std::mutex& issuing() { return issuing_; }

  /// Makes `create(handle)` - which starts the creation of a communicator - and waits until it is ready, the timeout
  /// has passed or the run has failed. The result lives as long as this object. `issuing` must not be held.
  template <class Create>
  LaneGroup& new_group(const std::string& name, const char* call, Create create) {
    LaneGroup& group = add_group(name);
    {
      const std::lock_guard lock(issuing_);
      require_running(group);
      check_nccl(create(&group.handle), call, place(), group.handle);
    }
    await_ready(group, call);
    return group;
  }
  /// The part of `parent` with this colour; null for NCCL_SPLIT_NOCOLOR. Collective over the parent.
  LaneGroup* split_group(LaneGroup& parent, const std::string& name, int color, int key, ncclConfig_t config);

  /// Waits until a communicator has taken in what it was asked (it does not block). With `issuing` held.
  void settle(LaneGroup& group, const char* call);
  /// Throws what failed the run. With `issuing` held.
  void require_running(const LaneGroup& group) const;

  /// Waits for work that no call stands for; RunError names `what` when it takes longer than the timeout.
  void await(const DeviceLane& lane, const EventOwner& event, const std::string& what);

  /// Throws the run's failure, once nothing on the device uses the caller's buffers any more.
  void check();

  /// Device memory that lives as long as this object: freeing would wait for whatever runs on the device.
  std::byte* allocate(std::int64_t bytes);
  /// At least `bytes` of device memory; valid until the next call, for work on the lane of collectives.
  std::byte* scratch(std::int64_t bytes);

  /// Free bytes of the device.
  std::int64_t free_memory() const;

 private:
  LaneGroup& add_group(const std::string& name);
  void await_ready(LaneGroup& group, const char* call);
  void watch();
  void look_for_errors();
  void abort_all();
  void destroy_all();

  int rank_, device_;
  std::shared_ptr<Rendezvous> rendezvous_;
  CommunicatorOptions options_;
  DeviceLane collectives_, messages_;
  std::vector<void*> allocated_;
  std::byte* scratch_ = nullptr;
  std::int64_t scratch_bytes_ = 0;
  std::mutex issuing_;
  std::vector<std::unique_ptr<LaneGroup>> groups_;  // guarded by issuing_
  std::atomic<bool> aborted_{false}, stop_{false};
  std::thread watchdog_;
};

}  // namespace reckon
