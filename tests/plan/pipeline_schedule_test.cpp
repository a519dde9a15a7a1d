#include "plan/pipeline_schedule.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "plan/errors.h"

namespace reckon {
namespace {

struct Case {
  ScheduleKind kind;
  int stages, chunks, micro_batches;
};

std::vector<Case> grid() {
  std::vector<Case> cases;
  for (const int p : {1, 2, 3, 4, 8})
    for (const int m : {1, 2, 3, 4, 8, 16, 24}) {
      cases.push_back({ScheduleKind::gpipe, p, 1, m});
      cases.push_back({ScheduleKind::one_forward_one_backward, p, 1, m});
      for (const int v : {1, 2, 3, 5})
        if (m % p == 0) cases.push_back({ScheduleKind::interleaved, p, v, m});
    }
  return cases;
}

TEST(PipelineSchedule, EveryMicroBatchGoesOnceForwardAndOnceBackwardThroughEveryChunk) {
  for (const Case& c : grid())
    for (int stage = 0; stage < c.stages; ++stage) {
      std::set<std::tuple<int, int, int>> seen;
      const auto actions = pipeline_actions(c.kind, c.stages, stage, c.chunks, c.micro_batches);
      for (const Action& action : actions) {
        ASSERT_TRUE(seen.insert({static_cast<int>(action.kind), action.micro_batch, action.chunk}).second);
        ASSERT_GE(action.micro_batch, 0);
        ASSERT_LT(action.micro_batch, c.micro_batches);
        ASSERT_GE(action.chunk, 0);
        ASSERT_LT(action.chunk, c.chunks);
      }
      ASSERT_EQ(static_cast<int>(seen.size()), 2 * c.micro_batches * c.chunks);
    }
}

// All stages take their next action as soon as its inputs exist; a schedule with a deadlock would stop early.
TEST(PipelineSchedule, RunsToTheEndWhenStagesWaitForEachOther) {
  for (const Case& c : grid()) {
    std::vector<std::vector<Action>> lists;
    for (int stage = 0; stage < c.stages; ++stage)
      lists.push_back(pipeline_actions(c.kind, c.stages, stage, c.chunks, c.micro_batches));
    const int last = c.stages * c.chunks - 1;
    std::set<std::tuple<bool, int, int>> done;  // forward?, micro-batch, virtual stage
    std::vector<std::size_t> next(lists.size(), 0);
    bool moved = true;
    while (moved) {
      moved = false;
      for (int stage = 0; stage < c.stages; ++stage) {
        const auto index = static_cast<std::size_t>(stage);
        if (next[index] == lists[index].size()) continue;
        const Action action = lists[index][next[index]];
        const int place = action.chunk * c.stages + stage;
        const bool forward = action.kind == ActionKind::forward;
        const bool ready = forward ? place == 0 || done.contains({true, action.micro_batch, place - 1})
                                   : done.contains({true, action.micro_batch, place}) &&
                                         (place == last || done.contains({false, action.micro_batch, place + 1}));
        if (!ready) continue;
        done.insert({forward, action.micro_batch, place});
        ++next[index];
        moved = true;
      }
    }
    EXPECT_EQ(static_cast<int>(done.size()), 2 * c.micro_batches * (last + 1))
        << c.stages << " stages, " << c.chunks << " chunks, " << c.micro_batches << " micro-batches";
  }
}

TEST(PipelineSchedule, AgoqExampleHasElevenNineSevenFiveInFlight) {
  std::vector<int> counts;
  for (int stage = 0; stage < 4; ++stage) counts.push_back(peak_in_flight(ScheduleKind::interleaved, 4, stage, 2, 8));
  EXPECT_EQ(counts, (std::vector<int>{11, 9, 7, 5}));
  EXPECT_EQ(bits_by_stage(counts, 4), (std::vector<int>{4, 5, 6, 8}));
}

TEST(PipelineSchedule, WidthsNeverGoBelowTheAskedOneNorAboveEight) {
  EXPECT_EQ(bits_by_stage({4, 3, 2, 1}, 4), (std::vector<int>{4, 5, 8, 8}));
  EXPECT_EQ(bits_by_stage({4, 4, 4}, 6), (std::vector<int>{6, 6, 6}));
  EXPECT_EQ(bits_by_stage({1}, 4), (std::vector<int>{4}));
}

// Closed forms of the literature: GPipe m, 1F1B min(m, p-i), interleaved min(mv, 2(p-i-1) + (v-1)p + 1).
TEST(PipelineSchedule, PeakInFlightEqualsTheClosedForms) {
  for (const Case& c : grid())
    for (int stage = 0; stage < c.stages; ++stage) {
      int expected = c.micro_batches;
      if (c.kind == ScheduleKind::one_forward_one_backward) expected = std::min(c.micro_batches, c.stages - stage);
      if (c.kind == ScheduleKind::interleaved)
        expected = std::min(c.micro_batches * c.chunks, 2 * (c.stages - stage - 1) + (c.chunks - 1) * c.stages + 1);
      EXPECT_EQ(peak_in_flight(c.kind, c.stages, stage, c.chunks, c.micro_batches), expected);
    }
}

TEST(PipelineSchedule, OneForwardOneBackwardOfTwoStagesByHand) {
  const auto f = [](int m) { return Action{ActionKind::forward, m, 0}; };
  const auto b = [](int m) { return Action{ActionKind::backward, m, 0}; };
  EXPECT_EQ(pipeline_actions(ScheduleKind::one_forward_one_backward, 2, 0, 1, 3),
            (std::vector<Action>{f(0), f(1), b(0), f(2), b(1), b(2)}));
  EXPECT_EQ(pipeline_actions(ScheduleKind::one_forward_one_backward, 2, 1, 1, 3),
            (std::vector<Action>{f(0), b(0), f(1), b(1), f(2), b(2)}));
}

/// Plays a schedule in which a rank sends its next message in a direction only when the last one has been taken.
class MessagePlay {
 public:
  MessagePlay(ScheduleKind kind, int stages, int chunks, int micro_batches) : stages_(stages), chunks_(chunks) {
    for (int stage = 0; stage < stages; ++stage)
      ranks_.push_back({pipeline_actions(kind, stages, stage, chunks, micro_batches), 0, false, {0, 0}, {0, 0}});
  }

  /// Actions left on all ranks when nobody can go on.
  std::size_t play() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int stage = 0; stage < stages_; ++stage)
        while (advance(stage)) moved = true;
    }
    std::size_t left = 0;
    for (const Rank& rank : ranks_) left += rank.actions.size() - rank.next;
    return left;
  }

 private:
  struct Rank {
    std::vector<Action> actions;
    std::size_t next = 0;
    bool has_input = false;
    int sent[2] = {0, 0}, taken[2] = {0, 0};  // forward, backward
  };

  bool advance(int stage) {
    Rank& rank = ranks_[static_cast<std::size_t>(stage)];
    if (rank.next == rank.actions.size()) return false;
    const Action& action = rank.actions[rank.next];
    const int way = action.kind == ActionKind::forward ? 0 : 1, step = way == 0 ? 1 : -1;
    const int virtual_stage = action.chunk * stages_ + stage, last = stages_ * chunks_ - 1;
    const Rank& before = ranks_[static_cast<std::size_t>((stage - step + stages_) % stages_)];
    const Rank& after = ranks_[static_cast<std::size_t>((stage + step + stages_) % stages_)];
    const bool receives = virtual_stage != (way == 0 ? 0 : last), sends = virtual_stage != (way == 0 ? last : 0);
    if (receives && !rank.has_input) {
      if (before.sent[way] == rank.taken[way]) return false;
      ++rank.taken[way];
      rank.has_input = true;
    }
    if (sends) {
      if (after.taken[way] < rank.sent[way]) return false;
      ++rank.sent[way];
    }
    rank.has_input = false;
    ++rank.next;
    return true;
  }

  int stages_, chunks_;
  std::vector<Rank> ranks_;
};

TEST(PipelineSchedule, OneUntakenMessageADirectionNeverStopsIt) {
  for (int stages = 2; stages <= 8; ++stages)
    for (int micro_batches = 1; micro_batches <= 3 * stages; ++micro_batches) {
      EXPECT_EQ(MessagePlay(ScheduleKind::gpipe, stages, 1, micro_batches).play(), 0U) << stages << micro_batches;
      EXPECT_EQ(MessagePlay(ScheduleKind::one_forward_one_backward, stages, 1, micro_batches).play(), 0U)
          << stages << " stages, " << micro_batches << " micro-batches";
      for (int chunks = 2; micro_batches % stages == 0 && chunks <= 4; ++chunks)
        EXPECT_EQ(MessagePlay(ScheduleKind::interleaved, stages, chunks, micro_batches).play(), 0U)
            << stages << " stages, " << micro_batches << " micro-batches, " << chunks << " chunks";
    }
}

TEST(PipelineSchedule, IllegalSchedulesAreRefusedWithTheRule) {
  EXPECT_THROW(pipeline_actions(ScheduleKind::one_forward_one_backward, 4, 0, 2, 8), RuleError);
  EXPECT_THROW(pipeline_actions(ScheduleKind::interleaved, 4, 0, 2, 6), RuleError);
  EXPECT_THROW(pipeline_actions(ScheduleKind::gpipe, 4, 4, 1, 8), RuleError);
  EXPECT_THROW(pipeline_actions(ScheduleKind::gpipe, 4, 0, 1, 0), RuleError);
}

TEST(LayersPerVirtualStage, SpreadsTheRestOverTheFirstStages) {
  Plan plan;
  plan.model.layers = 10;
  plan.parallel.pipeline = 4;
  EXPECT_EQ(layers_per_virtual_stage(plan), (std::vector<std::int64_t>{3, 3, 2, 2}));
  plan.parallel.chunks = 2;
  EXPECT_EQ(layers_per_virtual_stage(plan), (std::vector<std::int64_t>{2, 2, 1, 1, 1, 1, 1, 1}));
}

TEST(LayersPerVirtualStage, TakesThePlansListAndNeverDropsALayer) {
  Plan plan;
  plan.model.layers = 10;
  plan.parallel.pipeline = 2;
  plan.parallel.layers_per_stage = {6, 4};
  EXPECT_EQ(layers_per_virtual_stage(plan), (std::vector<std::int64_t>{6, 4}));
  plan.parallel.layers_per_stage = {6, 3};
  EXPECT_THROW(layers_per_virtual_stage(plan), RuleError);
  plan.parallel.layers_per_stage = {6, 2, 2};
  EXPECT_THROW(layers_per_virtual_stage(plan), RuleError);
}

}  // namespace
}  // namespace reckon
