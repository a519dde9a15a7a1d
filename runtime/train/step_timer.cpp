#include "runtime/train/step_timer.h"

#include <algorithm>
#include <utility>

namespace reckon {
namespace {

std::int64_t nanoseconds(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

}  // namespace

StepTimer::StepTimer() : waiting_(component("waiting")), other_(component("other")) {
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

StepTimer::Component StepTimer::enter(Component component) {
  if (!borders_) return other_;
  book(running_, Clock::now());
  return std::exchange(running_, component);
}

void StepTimer::begin_step() {
  exposed_.clear();
  busy_.clear();
  spans_.clear();
  messages_.clear();
  step_start_ = border_ = Clock::now();
  running_ = other_;
}

StepTimes StepTimer::end_step() {
  book(running_, Clock::now());
  StepTimes times;
  times.seconds = std::chrono::duration<double>(border_ - step_start_).count();
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
