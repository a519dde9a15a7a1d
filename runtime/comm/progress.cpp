#include "runtime/comm/progress.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

namespace reckon {
namespace {

// A ring usually comes soon; looking for it until then is an order of magnitude faster than a sleep. After that the
// rank sleeps. Each look yields the core: where nobody else wants it, it is back at once. Where it is not, somebody
// else runs here, a time slice has gone by, and looking costs more than it saves: a thread that slept is put back to
// work before one that only yielded. Such a rank sleeps at once for a while, longer each time it finds its core wanted
// again.
constexpr std::int64_t kSpinNanoseconds = 60000;
constexpr std::int64_t kSlowYieldNanoseconds = 50000;
constexpr std::int64_t kLeastCrowdedNanoseconds = 20000000, kMostCrowdedNanoseconds = 1000000000;
constexpr double kPatienceSeconds = 0.05;  // before the first look at whether the peers still live

constexpr double kLookSeconds = 1e-3;  // between looks of the thread while calls are made
constexpr double kRestSeconds = 10.0;
constexpr int kIdleLooks = 20;

/// Says on the board, for as long as it lives, that this rank may touch other ranks' memory.
class MovingGuard {
 public:
  explicit MovingGuard(HostBoard& board) : board_(board), allowed_(board.begin_moving()) {}
  ~MovingGuard() {
    if (allowed_) board_.end_moving();
  }
  MovingGuard(const MovingGuard&) = delete;
  MovingGuard& operator=(const MovingGuard&) = delete;

  bool allowed() const { return allowed_; }

 private:
  HostBoard& board_;
  const bool allowed_;
};

Seconds seconds_between(std::int64_t from, std::int64_t to) {
  return Seconds(static_cast<double>(std::max<std::int64_t>(to - from, 0)) * 1e-9);
}

}  // namespace

void ActiveCall::wait() {
  wait_began_ = monotonic_nanoseconds();
  if (!complete_.load(std::memory_order_acquire)) progress_.wait_for(*this);
  wait_ended_ = monotonic_nanoseconds();
}

bool ActiveCall::done() {
  return complete_.load(std::memory_order_acquire) || progress_.poll(*this);
}

OperationTime ActiveCall::time() const {
  return operation_time({issued_, met_, completed_, wait_began_, wait_ended_});
}

Progress::~Progress() {
  stop();
}

void Progress::stop() {
  stop_ = true;
  bell_.ring_thread();
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(engine_);
  const auto forgotten = std::move(active_);  // destroyed last: a call may hold the owner of this object
  const auto unseen = std::move(entering_);
}

void Progress::add(std::shared_ptr<ActiveCall> call) {
  board_.check();
  const bool announced = call->announce();
  call->counted_ = !announced || call->needs_thread();
  if (call->counted_) {
    bell_.thread_calls.fetch_add(1);
    if (!thread_.joinable()) thread_ = std::thread(&Progress::run_thread, this);
  }
  const bool needs_thread = call->counted_;
  {
    const std::lock_guard lock(entrance_);
    entering_.push_back(std::move(call));
  }
  if (needs_thread && thread_rests_.load()) bell_.ring_thread();
}

void Progress::retire(ActiveCall& call) {
  if (call.counted_) bell_.thread_calls.fetch_sub(1);
  call.counted_ = false;
  call.completed_ = monotonic_nanoseconds();
  call.complete_.store(true, std::memory_order_release);
}

void Progress::advance_all() {
  {
    const std::lock_guard lock(entrance_);
    std::move(entering_.begin(), entering_.end(), std::back_inserter(active_));
    entering_.clear();
  }
  if (active_.empty()) return;
  const MovingGuard moving(board_);
  if (!moving.allowed()) {
    active_.clear();
    return;
  }
  try {
    std::erase_if(active_, [this](const std::shared_ptr<ActiveCall>& call) {
      if (!call->announce() || !call->advance()) return false;
      retire(*call);
      return true;
    });
  } catch (const Error& error) {
    board_.fail(error.what(), error.exit_code());
  } catch (const std::exception& error) {  // out of memory, say: on the thread it would end the process
    board_.fail(fmt::format("moving data failed: {}", error.what()), ExitCode::run_failed);
  }
}

bool Progress::poll(ActiveCall& call) {
  board_.check();
  if (const std::unique_lock lock(engine_, std::try_to_lock); lock.owns_lock()) advance_all();
  return call.complete_.load(std::memory_order_acquire);
}

void Progress::sleep_until_rung(std::uint32_t seen, std::int64_t spin_until) {
  std::int64_t now = monotonic_nanoseconds();
  while (bell_.rings.load(std::memory_order_acquire) == seen) {
    if (now >= spin_until || now < crowded_until_) return bell_.sleep_caller(seen, sleep_seconds_);
    sched_yield();
    const std::int64_t back = monotonic_nanoseconds();
    if (back - now > kSlowYieldNanoseconds) {
      crowded_for_ = std::clamp(2 * crowded_for_, kLeastCrowdedNanoseconds, kMostCrowdedNanoseconds);
      crowded_until_ = back + crowded_for_;
    }
    now = back;
  }
  if (now >= crowded_until_) crowded_for_ = 0;
}

void Progress::check_overdue(ActiveCall& call) {
  const double waited = seconds_between(call.wait_began_, monotonic_nanoseconds()).value;
  if (waited > timeout_.value) return board_.fail(call.overdue(timeout_.value), ExitCode::timeout);
  if (waited < kPatienceSeconds) return;
  if (const std::string reason = call.broken(); !reason.empty()) board_.fail(reason, ExitCode::run_failed);
}

void Progress::wait_for(ActiveCall& call) {
  struct Waiting {  // rings come to the caller; afterwards the thread sees to those that came too late
    Doorbell& bell;
    std::uint32_t seen = 0;
    explicit Waiting(Doorbell& doorbell) : bell(doorbell) { bell.caller_waits.store(1); }
    ~Waiting() {
      bell.caller_waits.store(0);
      if (bell.thread_calls.load() != 0 && bell.rings.load() != seen) bell.ring_thread();
    }
  } waiting(bell_);
  while (true) {
    waiting.seen = bell_.rings.load();
    const std::int64_t spin_until = monotonic_nanoseconds() + kSpinNanoseconds;
    if (board_.failed()) board_.settle();
    board_.check();
    {
      const std::lock_guard lock(engine_);
      advance_all();
    }
    if (call.complete_.load(std::memory_order_acquire)) return;
    check_overdue(call);
    sleep_until_rung(waiting.seen, spin_until);
  }
}

// Waking the thread at every call would make it fight with a caller that is about to wait anyway. So it looks around
// every millisecond while there have been calls lately, and rests until rung when there have been none.
void Progress::run_thread() {
  int idle_looks = 0;
  while (!stop_) {
    const std::uint32_t seen = bell_.rings.load();
    if (bell_.caller_waits.load() == 0) {
      const std::lock_guard lock(engine_);
      advance_all();
    }
    idle_looks = bell_.thread_calls.load() == 0 ? idle_looks + 1 : 0;
    thread_rests_.store(idle_looks > kIdleLooks);
    if (bell_.rings.load() != seen || stop_) continue;
    if (thread_rests_.load() && bell_.thread_calls.load() != 0) continue;  // a call came in between
    bell_.sleep_thread(seen, thread_rests_.load() ? kRestSeconds : kLookSeconds);
  }
}

}  // namespace reckon
