#include "runtime/train/step_timer.h"

#include <algorithm>

namespace reckon {

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

StepTimer::Component StepTimer::enter(Component component) {
  const Clock::time_point now = Clock::now();
  grow(exposed_, running_) += std::chrono::duration<double>(now - border_).count();
  border_ = now;
  return std::exchange(running_, component);
}

void StepTimer::begin_step() {
  exposed_.clear();
  busy_.clear();
  step_start_ = border_ = Clock::now();
  running_ = other_;
}

StepTimes StepTimer::end_step() {
  enter(other_);
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
  OperationTime time;
  {
    const Span span(*this, component);
    time = handle.wait();
  }
  const double blocked = std::min(time.exposed_waiting.value, grow(exposed_, component));
  grow(exposed_, component) -= blocked;
  grow(exposed_, idle) += blocked;
  add_busy(component, time.moving.value);
}

}  // namespace reckon
