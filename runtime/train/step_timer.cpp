#include "runtime/train/step_timer.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace reckon {
namespace {

std::int64_t nanoseconds(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

}  // namespace

StepTimer::StepTimer(std::unique_ptr<StepClock> clock)
    : clock_(std::move(clock)), waiting_(component("waiting")), other_(component("other")) {
  running_ = other_;
  step_start_ = border_ = Clock::now();
}

StepTimer::Component StepTimer::component(std::string_view name) {
  if (const auto found = index_.find(name); found != index_.end()) return found->second;
  names_.emplace_back(name);
  return index_.emplace(name, names_.size() - 1).first->second;
}

double& StepTimer::grow(std::vector<double>& values, Component component) {
  if (values.size() <= component) values.resize(component + 1, 0.0);
  return values[component];
}

void StepTimer::book(Component component, Clock::time_point until) {
  grow(exposed_, component) += std::chrono::duration<double>(until - border_).count();
  spans_.push_back({component, nanoseconds(border_), nanoseconds(until)});
  border_ = until;
}

void StepTimer::cut(Component component) {
  clock_->mark();
  cuts_.push_back({component, waited_.idle, std::exchange(waited_.blocked, 0)});
}

void StepTimer::read_cuts() {
  const std::vector<std::int64_t> moments = clock_->moments();
  const auto add = [&](Component component, std::int64_t from, std::int64_t to) {
    grow(exposed_, component) += 1e-9 * static_cast<double>(to - from);
    spans_.push_back({component, from, to});
  };
  for (std::size_t i = 0; i < cuts_.size(); ++i) {
    const Cut& cut = cuts_[i];
    const std::int64_t from = moments[i], to = moments[i + 1], met = std::min(from + cut.blocked, to);
    if (cut.blocked > 0) add(cut.idle, from, met);
    add(cut.component, met, to);
  }
}

StepTimer::Component StepTimer::enter(Component component) {
  if (!borders_) return other_;
  if (clock_) cut(running_);
  else book(running_, Clock::now());
  return std::exchange(running_, component);
}

void StepTimer::begin_step() {
  exposed_.clear();
  busy_.clear();
  spans_.clear();
  messages_.clear();
  cuts_.clear();
  if (clock_) {
    clock_->begin();
    clock_->mark();
  }
  step_start_ = border_ = Clock::now();
  running_ = other_;
}

StepTimes StepTimer::end_step() {
  StepTimes times;
  if (clock_) {
    cut(running_);
    read_cuts();
    times.seconds = 1e-9 * static_cast<double>(spans_.back().end - spans_.front().start);
  } else {
    book(running_, Clock::now());
    times.seconds = std::chrono::duration<double>(border_ - step_start_).count();
  }
  exposed_.resize(names_.size(), 0.0);
  busy_.resize(names_.size(), 0.0);
  times.exposed = exposed_;
  times.busy = busy_;
  for (Component i = 0; i < names_.size(); ++i) times.busy[i] = std::max(busy_[i], exposed_[i]);
  return times;
}

void StepTimer::wait(Handle& handle, Component component, Component idle) {
  const Span span(*this, component);
  const OperationTime time = handle.wait();
  if (!borders_) return;
  if (clock_) {
    waited_ = {component, idle, std::llround(time.exposed_waiting.value * 1e9)};
    add_busy(component, time.moving.value);
    return;
  }
  const auto blocked =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(time.exposed_waiting.value));
  book(idle, std::min(border_ + blocked, Clock::now()));
  add_busy(component, time.moving.value);
}

void StepTimer::note_message(std::int64_t peer, bool forward, bool sends) {
  if (borders_) messages_.push_back({peer, forward, sends, nanoseconds(Clock::now())});
}

RankTrace StepTimer::trace() const {
  return {0, 0, names_, spans_, messages_};
}

}  // namespace reckon
