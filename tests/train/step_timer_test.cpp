// The parts of a step add up to it, and its trace is the same parts in order.
#include "runtime/train/step_timer.h"

#include <gtest/gtest.h>

#include <numeric>

#include "runtime/comm/local_communicator.h"
#include "runtime/train/clock_offset.h"
#include "runtime/train/exchange_traces.h"

namespace reckon {
namespace {

/// A call that has met its peers after `waiting` of the time that its caller spent blocked.
class FinishedCall final : public PendingOperation {
 public:
  explicit FinishedCall(OperationTime time) : time_(time) {}
  void wait() override {}
  bool done() override { return true; }
  OperationTime time() const override { return time_; }

 private:
  OperationTime time_;
};

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

TEST(StepTimer, NestedComponentsAreExclusiveAndAddUpToTheStep) {
  StepTimer timer;
  const auto outer = timer.component("optimizer"), inner = timer.component("forward.qkv");
  timer.begin_step();
  {
    const StepTimer::Span around(timer, outer);
    const StepTimer::Span inside(timer, inner);
  }
  const StepTimes times = timer.end_step();
  EXPECT_NEAR(sum(times.exposed), times.seconds, 1e-12);  // a handful of additions
  EXPECT_GT(times.exposed[inner], 0.0);
}

/// A device that works off marks 100 ns apart, whenever they are made, and is asked for them once.
class SlowDevice final : public StepClock {
 public:
  explicit SlowDevice(int& reads) : reads_(reads) {}
  void begin() override { marks_ = 0; }
  void mark() override { ++marks_; }
  std::vector<std::int64_t> moments() override {
    ++reads_;
    std::vector<std::int64_t> moments;
    for (std::int64_t mark = 0; mark < marks_; ++mark) moments.push_back(1000 + 100 * mark);
    return moments;
  }

 private:
  int& reads_;
  std::int64_t marks_ = 0;
};

TEST(StepTimer, OnADeviceBordersAreItsMarksAndAreReadOnceAStep) {
  int reads = 0;
  StepTimer timer(std::make_unique<SlowDevice>(reads));
  const auto qkv = timer.component("forward.qkv"), gather = timer.component("tensor.all_gather"),
             waiting = timer.component("waiting"), other = timer.component("other");
  for (int step = 1; step <= 2; ++step) {
    timer.begin_step();
    { const StepTimer::Span span(timer, qkv); }
    Handle handle(std::make_shared<FinishedCall>(OperationTime{{}, Seconds(5e-9), Seconds(30e-9), {}}));
    timer.wait(handle, gather);
    EXPECT_EQ(reads, step - 1);
    const StepTimes times = timer.end_step();
    EXPECT_EQ(reads, step);
    EXPECT_NEAR(times.seconds, 500e-9, 1e-15);  // other, qkv, other, gather, other: 100 ns each
    EXPECT_NEAR(times.exposed[qkv], 100e-9, 1e-15);
    EXPECT_NEAR(times.exposed[waiting], 30e-9, 1e-15);
    EXPECT_NEAR(times.exposed[gather], 70e-9, 1e-15);
    EXPECT_NEAR(times.exposed[other], 300e-9, 1e-15);
    EXPECT_EQ(timer.trace().spans.front().start, 1000);
    EXPECT_EQ(timer.trace().spans.back().end, 1500);
  }
}

TEST(StepTimer, TheTraceIsTheStepWithoutGapsOrOverlaps) {
  StepTimer timer;
  const auto qkv = timer.component("forward.qkv");
  timer.begin_step();
  for (int op = 0; op < 3; ++op) const StepTimer::Span span(timer, qkv);
  timer.note_message(1, true, true);
  const StepTimes times = timer.end_step();
  const RankTrace trace = timer.trace();
  ASSERT_EQ(trace.spans.size(), 7u);  // other, qkv, other, qkv, other, qkv, other
  for (std::size_t i = 1; i < trace.spans.size(); ++i) EXPECT_EQ(trace.spans[i].start, trace.spans[i - 1].end);
  EXPECT_NEAR(static_cast<double>(trace.spans.back().end - trace.spans.front().start) * 1e-9, times.seconds, 1e-12);
  ASSERT_EQ(trace.messages.size(), 1u);
  EXPECT_GE(trace.messages[0].time, trace.spans[5].end);
  EXPECT_LE(trace.messages[0].time, trace.spans[6].end);
}

TEST(StepTimer, WaitingForPeersIsBookedApartFromMoving) {
  StepTimer timer;
  const auto reduce = timer.component("tensor.all_reduce"), waiting = timer.component("waiting");
  timer.begin_step();
  Handle handle(
      std::make_shared<FinishedCall>(OperationTime{Seconds(1.0), Seconds(0.25), Seconds(1.0), Seconds(0.25)}));
  timer.wait(handle, reduce);  // says it was blocked for a second, longer than it took: what it took is all waiting
  const StepTimes times = timer.end_step();
  EXPECT_GT(times.exposed[waiting], 0.0);
  EXPECT_LT(times.exposed[waiting], times.seconds);
  EXPECT_DOUBLE_EQ(times.busy[reduce], 0.25);
  EXPECT_NEAR(sum(times.exposed), times.seconds, 1e-12);
}

TEST(StepTimer, WithoutBordersTheStepIsOnePart) {
  StepTimer timer;
  const auto qkv = timer.component("forward.qkv"), other = timer.component("other");
  timer.without_borders();
  timer.begin_step();
  { const StepTimer::Span span(timer, qkv); }
  const StepTimes times = timer.end_step();
  EXPECT_EQ(times.exposed[qkv], 0.0);
  EXPECT_EQ(times.exposed[other], times.seconds);
}

TEST(ClockOffset, RanksOfOneHostShareTheClock) {
  run_ranks_as_threads(3, {}, [](Communicator& world) { EXPECT_EQ(clock_offset(world), 0) << world.rank(); });
}

TEST(ExchangeTraces, EveryRankGetsAllOnTheCommonClock) {
  run_ranks_as_threads(2, {}, [](Communicator& world) {
    const std::int64_t rank = world.rank(), offset = 1000 * rank;
    const RankTrace own{
        rank, rank, {"other", "bubble"}, {{1, 5 + offset, 9 + offset}}, {{1 - rank, false, true, 7 + offset}}};
    const std::vector<RankTrace> all = exchange_traces(world, own, offset);
    ASSERT_EQ(all.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(all[i].rank, static_cast<std::int64_t>(i));
      EXPECT_EQ(all[i].components, own.components);
      EXPECT_EQ(all[i].spans.at(0).start, 5);
      EXPECT_EQ(all[i].spans.at(0).end, 9);
      EXPECT_EQ(all[i].messages.at(0).time, 7);
      EXPECT_FALSE(all[i].messages.at(0).forward);
    }
  });
}

}  // namespace
}  // namespace reckon
