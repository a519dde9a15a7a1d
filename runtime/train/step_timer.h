// Where the time of a step goes. Components nest and are exclusive: entering one pauses the one around it, so that
// their sum is the step exactly. One clock read at each border; about 30 ns. On a device the borders are marks of its
// clock, which are read when the step is over, so that nothing waits for them inside it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plan/rank_trace.h"
#include "plan/units.h"
#include "runtime/comm/handle.h"
#include "runtime/train/step_clock.h"

namespace reckon {

/// Seconds of every component in one step. `busy` also counts what happened while the rank computed (communication that
/// was hidden); `exposed` are the parts that the step consists of.
struct StepTimes {
  double seconds = 0;
  std::vector<double> busy, exposed;  // by component
};

class StepTimer {
 public:
  using Component = std::size_t;

  /// `clock` is the device's; null: the rank computes where it is timed.
  explicit StepTimer(std::unique_ptr<StepClock> clock = nullptr);
  /// The same name always gives the same component.
  Component component(std::string_view name);
  const std::vector<std::string>& names() const { return names_; }

  /// Without borders everything counts as "other": for measuring what timing itself costs.
  void without_borders() { borders_ = false; }

  void begin_step();
  StepTimes end_step();

  /// Waits for a communication: time spent blocked goes to `component` while bytes move, and before, until the last
  /// peer has come, to `idle` ("waiting" unless said otherwise).
  void wait(Handle& handle, Component component, Component idle);
  void wait(Handle& handle, Component component) { wait(handle, component, waiting_); }

  /// Notes one side of a message with rank `peer` for the trace.
  void note_message(std::int64_t peer, bool forward, bool sends);
  /// The spans and messages since begin_step, on this rank's own clock.
  RankTrace trace() const;

  class Span {
   public:
    Span(StepTimer& timer, Component component) : timer_(timer), previous_(timer.enter(component)) {}
    ~Span() { timer_.enter(previous_); }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    StepTimer& timer_;
    Component previous_;
  };

 private:
  using Clock = std::chrono::steady_clock;
  /// Books the time since the last border on the running component, and makes `component` the running one.
  Component enter(Component component);
  void book(Component component, Clock::time_point until);
  /// The same on a device: what runs until the mark that is made now.
  void cut(Component component);
  void read_cuts();
  void add_busy(Component component, double seconds) { grow(busy_, component) += seconds; }
  static double& grow(std::vector<double>& values, Component component);

  /// Between two marks; the first `blocked` nanoseconds count as `idle`.
  struct Cut {
    Component component, idle;
    std::int64_t blocked;
  };

  std::unique_ptr<StepClock> clock_;
  std::vector<Cut> cuts_;
  Cut waited_{0, 0, 0};  // of the wait that the next cut ends

  std::map<std::string, Component, std::less<>> index_;
  std::vector<std::string> names_;
  std::vector<double> exposed_, busy_;
  std::vector<TraceSpan> spans_;
  std::vector<TraceMessage> messages_;
  Clock::time_point step_start_, border_;
  Component running_, waiting_, other_;
  bool borders_ = true;
};

}  // namespace reckon
