// The simulated pipeline against the schedules' formulas (docs/simulator.md): bubble, activations in flight, messages.
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "sim/memory_timeline.h"
#include "sim/played_step.h"
#include "tests/sim/synthetic_step.h"

namespace reckon {
namespace {

constexpr Seconds kForward(1e-3), kBackward(2e-3);
constexpr std::int64_t kMilli = 1'000'000'000;  // picoseconds

/// Chunks of which some kept activation is allocated, at most at once.
std::size_t most_in_flight(const SyntheticStep& step, std::int64_t stage) {
  const auto played = play_step(step.plan, step.times);
  const MemoryTimeline timeline = memory_timeline(step.plan, *played, stage, {});
  std::map<std::pair<int, int>, int> blocks;  // by micro-batch and chunk
  std::size_t most = 0;
  for (const MemoryChange& change : timeline.changes) {
    if (change.category != MemoryCategory::activations) continue;
    const std::pair key(change.micro_batch, change.chunk);
    blocks[key] += change.kind == ChangeKind::free ? -1 : 1;
    if (blocks[key] == 0) blocks.erase(key);
    most = std::max(most, blocks.size());
  }
  return most;
}

/// Calls `check(p, m, v)` for a grid of stages, micro-batches and chunks.
template <class Check>
void for_pipelines(Check&& check) {
  for (const int p : {1, 2, 3, 4, 8})
    for (const int m : {1, 2, 4, 8, 24})
      for (const int v : {1, 2, 3}) {
        SCOPED_TRACE(testing::Message() << p << " stages, " << m << " micro-batches, " << v << " chunks");
        check(p, m, v);
      }
}

TEST(Pipelines, EvenStagesTakeTheFormulasTime) {
  for_pipelines([](int p, int m, int v) {
    // A micro-batch takes v layers of 3 ms on each rank. Ideal time m * 3v ms; bubble (p - 1) * 3 ms: of a whole stage
    // for one chunk, of 1/v of it for v chunks (methods: (p - 1)(F + B) / v).
    const std::vector<std::int64_t> layers(static_cast<std::size_t>(p * v), 1);
    const std::int64_t expected = (std::int64_t{m} * v + p - 1) * 3 * kMilli;
    if (v == 1) {
      for (const ScheduleKind kind : {ScheduleKind::gpipe, ScheduleKind::one_forward_one_backward}) {
        const SyntheticStep step = synthetic_step(kind, layers, p, m, kForward, kBackward);
        EXPECT_EQ(play_step(step.plan, step.times)->end.value, expected);
      }
    }
    if (m % p == 0) {
      const SyntheticStep step = synthetic_step(ScheduleKind::interleaved, layers, p, m, kForward, kBackward);
      EXPECT_EQ(play_step(step.plan, step.times)->end.value, expected);
    }
  });
}

TEST(Pipelines, InFlightCountsEqualTheFormulas) {
  for_pipelines([](int p, int m, int v) {
    const std::vector<std::int64_t> layers(static_cast<std::size_t>(p * v), 1);
    for (int stage = 0; stage < p; ++stage) {
      if (v == 1) {
        EXPECT_EQ(most_in_flight(synthetic_step(ScheduleKind::gpipe, layers, p, m, kForward, kBackward), stage),
                  static_cast<std::size_t>(m));
        EXPECT_EQ(most_in_flight(
                      synthetic_step(ScheduleKind::one_forward_one_backward, layers, p, m, kForward, kBackward), stage),
                  static_cast<std::size_t>(std::min(m, p - stage)));
      } else if (m % p == 0) {
        EXPECT_EQ(most_in_flight(synthetic_step(ScheduleKind::interleaved, layers, p, m, kForward, kBackward), stage),
                  static_cast<std::size_t>(std::min(m * v, 2 * (p - stage - 1) + (v - 1) * p + 1)));
      }
    }
  });
}

TEST(Pipelines, EveryBoundaryIsCrossedOncePerMicroBatchAndDirection) {
  for_pipelines([](int p, int m, int v) {
    if (v > 1 && m % p != 0) return;
    const std::vector<std::int64_t> layers(static_cast<std::size_t>(p * v), 1);
    const SyntheticStep step =
        synthetic_step(v > 1 ? ScheduleKind::interleaved : ScheduleKind::one_forward_one_backward, layers, p, m,
                       kForward, kBackward, Seconds(1e-4));
    const auto played = play_step(step.plan, step.times);
    std::size_t forward = 0, backward = 0;
    for (int rank = 0; rank < p; ++rank) {
      forward += played->spans->spans(rank, kSendForward).size();
      backward += played->spans->spans(rank, kSendBackward).size();
    }
    EXPECT_EQ(forward, static_cast<std::size_t>(m * (p * v - 1)));
    EXPECT_EQ(backward, forward);
  });
}

TEST(Schedule, PeakCountsOfThePublishedExample) {
  // 2605.00539: 4 stages, 2 chunks, 8 micro-batches hold 11, 9, 7 and 5 chunk activations.
  const SyntheticStep step =
      synthetic_step(ScheduleKind::interleaved, std::vector<std::int64_t>(8, 1), 4, 8, kForward, kBackward);
  for (int stage = 0; stage < 4; ++stage) EXPECT_EQ(most_in_flight(step, stage), std::size_t(11 - 2 * stage));
}

TEST(Schedule, AStageThatIsSlowerThanTheOthersSetsThePace) {
  // Layers 1, 1, 2 on three stages, 1F1B, 6 micro-batches: all stages once, then the slowest m - 1 times more.
  // (3 + 3 + 6) + 5 * 6 = 42 ms.
  const SyntheticStep step =
      synthetic_step(ScheduleKind::one_forward_one_backward, {1, 1, 2}, 3, 6, kForward, kBackward);
  EXPECT_EQ(play_step(step.plan, step.times)->end.value, 42 * kMilli);
}

TEST(Schedule, MessagesDelayTheFirstAndLastPassage) {
  // One micro-batch through three stages: 3 forwards, 3 backwards, 4 messages of 0.5 ms: 9 + 2 = 11 ms.
  const SyntheticStep step =
      synthetic_step(ScheduleKind::one_forward_one_backward, {1, 1, 1}, 3, 1, kForward, kBackward, Seconds(0.5e-3));
  EXPECT_EQ(play_step(step.plan, step.times)->end.value, 11 * kMilli);
}

TEST(Schedule, UnevenStagesKeepEveryLayer) {
  const SyntheticStep step = synthetic_step(ScheduleKind::interleaved, {3, 1, 2, 2, 1, 4}, 3, 6, kForward, kBackward);
  const auto played = play_step(step.plan, step.times);
  std::int64_t work = 0;
  for (int rank = 0; rank < 3; ++rank)
    for (const Span& span : played->spans->spans(rank, kCompute)) work += (span.end - span.start).value;
  EXPECT_EQ(work, 13 * 6 * 3 * kMilli);  // 13 layers, 6 micro-batches, 3 ms
}

}  // namespace
}  // namespace reckon
