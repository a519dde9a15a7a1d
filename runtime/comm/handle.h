// What a call returns: something to wait on, and afterwards the time it took, waiting for peers apart from moving
// bytes.
#pragma once

#include <cstdint>
#include <memory>

#include "plan/units.h"

namespace reckon {

/// From the call to its completion. `exposed_*` are the parts that the caller spent blocked in wait().
struct OperationTime {
  Seconds waiting;  // until the last peer had made the same call
  Seconds moving;   // from then on
  Seconds exposed_waiting, exposed_moving;
};

/// The moments of a call in nanoseconds of one clock; `met` is the last peer's call.
struct CallMoments {
  std::int64_t issued = 0, met = 0, completed = 0;
  std::int64_t wait_began = 0, wait_ended = 0;
};
OperationTime operation_time(const CallMoments& moments);

/// A call in flight; each backend derives its own.
class PendingOperation {
 public:
  virtual ~PendingOperation() = default;
  virtual void wait() = 0;
  virtual bool done() = 0;
  virtual OperationTime time() const = 0;
};

/// Movable owner of a pending call. Destroying it waits, because the buffers may still be in use; an error met there
/// is met again by the group's next call.
class [[nodiscard]] Handle {
 public:
  Handle() = default;
  explicit Handle(std::shared_ptr<PendingOperation> pending) : pending_(std::move(pending)) {}
  Handle(Handle&&) = default;
  Handle& operator=(Handle&& other) {
    finish();
    pending_ = std::move(other.pending_);
    return *this;
  }
  ~Handle() { finish(); }

  /// Blocks until the result is there and the buffers are free. Returns the call's time. Throws RunError: a peer called
  /// something else, did not call in time (ExitCode::timeout) or failed.
  OperationTime wait() {
    if (!pending_) return {};
    const auto pending = std::move(pending_);
    pending->wait();
    return pending->time();
  }
  /// True if wait() would not block. Also makes progress.
  bool done() { return !pending_ || pending_->done(); }

 private:
  void finish() noexcept {
    try {
      wait();
    } catch (...) {  // reported by the next call: a failed group stays failed
    }
  }

  std::shared_ptr<PendingOperation> pending_;
};

}  // namespace reckon
