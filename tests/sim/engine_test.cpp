// Small scenarios whose times are worked out by hand. Times in picoseconds.
#include "sim/engine.h"

#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <tuple>

namespace reckon {
namespace {

struct Recorder : SpanSink {
  std::map<std::tuple<int, int, int>, Span> spans;  // rank, stream, task
  void on_span(const Span& span, const Task&) override { spans[{span.rank, span.stream, span.task}] = span; }
  std::int64_t arrival(int rank, int stream, int task) { return spans.at({rank, stream, task}).arrival.value; }
  std::int64_t start(int rank, int stream, int task) { return spans.at({rank, stream, task}).start.value; }
  std::int64_t end(int rank, int stream, int task) { return spans.at({rank, stream, task}).end.value; }
};

Task work(std::int64_t duration) {
  Task task;
  task.duration = Picoseconds(duration);
  return task;
}
Task transfer(std::int64_t duration, std::uint8_t port = 0) {
  Task task = work(duration);
  task.kind = TaskKind::transfer;
  task.port = port;
  return task;
}

constexpr int kCompute = 0, kNetwork = 1, kNetwork2 = 2;

/// `ranks` ranks, each with its own program and `ports` ports to be filled in.
Scenario scenario(std::vector<Program> programs, int ports = 1) {
  Scenario result;
  result.programs = std::move(programs);
  for (std::size_t i = 0; i < result.programs.size(); ++i) result.program_of_rank.push_back(static_cast<int>(i));
  result.ports = ports;
  result.communicator_of_port.assign(result.programs.size() * static_cast<std::size_t>(ports), -1);
  return result;
}

int add_communicator(Scenario& scenario, Communicator communicator, int port = 0) {
  const int index = static_cast<int>(scenario.communicators.size());
  for (const auto& member : communicator.members)
    scenario.communicator_of_port[static_cast<std::size_t>(member.rank * scenario.ports + port)] = index;
  scenario.communicators.push_back(std::move(communicator));
  return index;
}

TEST(Engine, AStreamRunsItsTasksInOrder) {
  Program program;
  program.add(kCompute, work(10), {});
  program.add(kCompute, work(5), {});
  Recorder recorder;
  const EngineResult result = play(scenario({program}), {}, recorder);
  EXPECT_EQ(recorder.end(0, kCompute, 0), 10);
  EXPECT_EQ(recorder.start(0, kCompute, 1), 10);
  EXPECT_EQ(result.end.value, 15);
  EXPECT_EQ(result.events, 2);
}

TEST(Engine, ATaskWaitsForOtherStreams) {
  Program program;
  const Wait slow = program.add(kNetwork, work(30), {});
  program.add(kCompute, work(10), {});
  program.add(kCompute, work(1), {slow});
  Recorder recorder;
  play(scenario({program}), {}, recorder);
  EXPECT_EQ(recorder.start(0, kCompute, 1), 30);
}

TEST(Engine, ACollectiveWaitsForTheSlowestMember) {
  Program fast, slow;
  fast.add(kNetwork, transfer(7), {fast.add(kCompute, work(10), {})});
  slow.add(kNetwork, transfer(7), {slow.add(kCompute, work(25), {})});
  Scenario two = scenario({fast, slow});
  add_communicator(two, {{{0, kNetwork}, {1, kNetwork}}, {}, -1, 0, true});
  Recorder recorder;
  play(two, {}, recorder);
  EXPECT_EQ(recorder.arrival(0, kNetwork, 0), 10);
  EXPECT_EQ(recorder.start(0, kNetwork, 0), 25);  // 15 of waiting
  EXPECT_EQ(recorder.end(0, kNetwork, 0), 32);    // 7 of moving
  EXPECT_EQ(recorder.arrival(1, kNetwork, 0), 25);
}

TEST(Engine, AMessageWakesTheReceiver) {
  Program sender, receiver;
  sender.add(kNetwork, transfer(5), {sender.add(kCompute, work(10), {})});
  receiver.add(kCompute, work(3), {{kStreams + 1, 1}});
  Scenario two = scenario({sender, receiver});
  add_communicator(two, {{{0, kNetwork}}, {}, 1, 1, false});
  Recorder recorder;
  play(two, {}, recorder);
  EXPECT_EQ(recorder.start(1, kCompute, 0), 15);
}

TEST(Engine, OverlapSlowsBothUntilOneEnds) {
  // Work 100 beside a transfer of 40; slow-downs 1.25 and 2. The transfer takes 80 while 64 of the work get done; the
  // other 36 follow at full speed: 116.
  Program program;
  program.add(kCompute, work(100), {});
  program.add(kNetwork, transfer(40), {});
  Scenario one = scenario({program});
  one.overlap = {1.25, 2.0};
  add_communicator(one, {{{0, kNetwork}}, {}, -1, 0, true});
  Recorder recorder;
  play(one, {}, recorder);
  EXPECT_EQ(recorder.end(0, kNetwork, 0), 80);
  EXPECT_EQ(recorder.end(0, kCompute, 0), 116);
}

TEST(Engine, WaitingMembersAreNotSlowed) {
  // Rank 0 arrives at once and waits while it works; rank 1 works 50 first. Only [50, 60] overlaps on rank 0.
  Program early, late;
  early.add(kCompute, work(60), {});
  early.add(kNetwork, transfer(100), {});
  late.add(kNetwork, transfer(100), {late.add(kCompute, work(50), {})});
  Scenario two = scenario({early, late});
  two.overlap = {2.0, 1.0};
  add_communicator(two, {{{0, kNetwork}, {1, kNetwork}}, {}, -1, 0, true});
  Recorder recorder;
  play(two, {}, recorder);
  EXPECT_EQ(recorder.end(0, kCompute, 0), 70);  // 50 at full speed, 10 at half
  EXPECT_EQ(recorder.end(0, kNetwork, 0), 150);
}

TEST(Engine, TransfersShareALink) {
  // 10 and 30 start together on one link: each at half speed, the short one ends at 20; the other has 20 left: 40.
  Program program;
  program.add(kNetwork, transfer(10, 0), {});
  program.add(kNetwork2, transfer(30, 1), {});
  Scenario one = scenario({program}, 2);
  one.link_capacities = {1.0};
  add_communicator(one, {{{0, kNetwork}}, {0}, -1, 0, true}, 0);
  add_communicator(one, {{{0, kNetwork2}}, {0}, -1, 0, true}, 1);
  Recorder recorder;
  play(one, {}, recorder);
  EXPECT_EQ(recorder.end(0, kNetwork, 0), 20);
  EXPECT_EQ(recorder.end(0, kNetwork2, 0), 40);
}

TEST(Engine, ASlowRankDelaysItsGroupByItsFactor) {
  Program program;
  program.add(kNetwork, transfer(7), {program.add(kCompute, work(100), {})});
  Scenario two = scenario({program, program});
  add_communicator(two, {{{0, kNetwork}, {1, kNetwork}}, {}, -1, 0, true});
  Recorder recorder;
  const EngineResult result = play(two, Perturbation(1, 0.0, {{1, 1.5}}, 2), recorder);
  EXPECT_EQ(result.end.value, 157);
}

TEST(Engine, JitterHasTheAskedMeanAndVariationAndIsReproducible) {
  const Perturbation jitter(42, 0.1, {}, 100);
  double sum = 0.0, squares = 0.0;
  constexpr int kTasks = 2000;
  for (int rank = 0; rank < 100; ++rank)
    for (int task = 0; task < kTasks; ++task) {
      const double factor = jitter.factor(rank, 0, task);
      ASSERT_EQ(factor, jitter.factor(rank, 0, task));
      sum += factor;
      squares += factor * factor;
    }
  const double mean = sum / (100 * kTasks);
  // 200,000 draws: standard error of the mean 0.1 / 447 = 2.2e-4; of the variation about 1.6e-4. Five of them.
  EXPECT_NEAR(mean, 1.0, 1.1e-3);
  EXPECT_NEAR(std::sqrt(squares / (100 * kTasks) - mean * mean) / mean, 0.1, 1e-3);
  EXPECT_NE(Perturbation(43, 0.1, {}, 100).factor(0, 0, 0), jitter.factor(0, 0, 0));
}

TEST(Engine, AnUnfulfillableWaitIsReported) {
  Program program;
  program.add(kCompute, work(1), {{kStreams, 1}});  // no message will ever come
  Recorder recorder;
  EXPECT_THROW(play(scenario({program}), {}, recorder), std::logic_error);
}

TEST(Engine, AnEmptyScenarioEndsAtZero) {
  Recorder recorder;
  EXPECT_EQ(play(scenario({Program{}}), {}, recorder).end.value, 0);
}

TEST(Engine, IdenticalRanksRunExactlyLikeOne) {
  // Folding rests on this: work beside a slowed collective on shared links, once with one rank, once with four.
  Program program;
  for (int i = 0; i < 50; ++i) {
    const Wait computed = program.add(kCompute, work(1000 + 37 * i), {});
    program.add(kNetwork, transfer(700 + 11 * i), {computed});
    program.add(kNetwork2, transfer(900, 1), {computed});
  }
  const auto end_with = [&](int ranks) {
    Scenario many = scenario(std::vector<Program>(static_cast<std::size_t>(ranks), program), 2);
    many.overlap = {1.15, 1.1};
    many.link_capacities.assign(static_cast<std::size_t>(ranks), 1.0);  // each rank has its own port
    Communicator all;
    for (int rank = 0; rank < ranks; ++rank) {
      add_communicator(many, {{{rank, kNetwork2}}, {rank}, -1, 0, true}, 1);
      all.members.push_back({rank, kNetwork});
      all.links.push_back(rank);
    }
    add_communicator(many, all, 0);
    Recorder recorder;
    return play(many, {}, recorder).end.value;
  };
  EXPECT_EQ(end_with(4), end_with(1));
}

}  // namespace
}  // namespace reckon
