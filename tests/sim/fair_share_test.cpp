// Each test states the system of flows and links and solves it by hand.
#include "sim/fair_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "sim/link_shares.h"

namespace reckon {
namespace {

using Rates = std::vector<double>;

TEST(FairShare, OneFlowIsLimitedByItsCapOrItsLink) {
  EXPECT_EQ(fair_share({{1.0, {0}}}, {2.0}), Rates({1.0}));
  EXPECT_EQ(fair_share({{5.0, {0}}}, {2.0}), Rates({2.0}));
  EXPECT_EQ(fair_share({{3.0, {}}}, {}), Rates({3.0}));
}

TEST(FairShare, TwoFlowsHalveOneLink) {
  // a + b <= 1  ->  a = b = 1/2
  EXPECT_EQ(fair_share({{1.0, {0}}, {1.0, {0}}}, {1.0}), Rates({0.5, 0.5}));
}

TEST(FairShare, ACappedFlowLeavesTheRestToTheOther) {
  // a <= 1/4, a + b <= 1  ->  a = 1/4, b = 3/4
  EXPECT_EQ(fair_share({{0.25, {0}}, {1.0, {0}}}, {1.0}), Rates({0.25, 0.75}));
}

TEST(FairShare, CrossingFlows) {
  // The classic line: long flow over both links, one short flow on each. l0: x + a <= 1, l1: x + b <= 2.
  // The level rises to 1/2, where l0 is full: x = a = 1/2. b goes on to 2 - 1/2 = 3/2.
  EXPECT_EQ(fair_share({{9.0, {0, 1}}, {9.0, {0}}, {9.0, {1}}}, {1.0, 2.0}), Rates({0.5, 0.5, 1.5}));
}

TEST(FairShare, ThreeLevels) {
  // l0: a + b + c <= 3; l1: c + d <= 1.5; l2: d + e <= 4, e <= 10.
  // Level 3/4: l1 full, c = d = 3/4. Then a + b = 9/4: a = b = 9/8. e = 4 - 3/4 = 13/4.
  const Rates rates = fair_share({{9, {0}}, {9, {0}}, {9, {0, 1}}, {9, {1, 2}}, {10, {2}}}, {3.0, 1.5, 4.0});
  EXPECT_EQ(rates, Rates({1.125, 1.125, 0.75, 0.75, 3.25}));
}

TEST(FairShare, RingsOverSharedNetworkPorts) {
  // Two nodes, two ranks each, one port of capacity 1 a node and direction. Two ring groups, each with one rank a node:
  // both cross all four port directions. A third flow sends from node 0 to node 1 only.
  // out0: r0 + r1 + s <= 1, in1: r0 + r1 + s <= 1, out1: r0 + r1 <= 1, in0: r0 + r1 <= 1 -> all at 1/3.
  const std::vector<int> all = {0, 1, 2, 3};  // out0, in0, out1, in1
  const Rates rates = fair_share({{1, all}, {1, all}, {1, {0, 3}}}, {1, 1, 1, 1});
  for (const double rate : rates) EXPECT_DOUBLE_EQ(rate, 1.0 / 3.0);
}

// The definition, checked directly: every flow is at its cap, or crosses a full link on which nobody has more.
TEST(FairShare, RandomSystemsFulfilTheDefinition) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 500; ++round) {
    std::vector<double> capacities(1 + random() % 6);
    for (double& capacity : capacities) capacity = 0.5 + static_cast<double>(random() % 100) / 20.0;
    std::vector<Flow> flows(1 + random() % 10);
    for (Flow& flow : flows) {
      flow.cap = 0.1 + static_cast<double>(random() % 50) / 20.0;
      for (int link = 0; link < static_cast<int>(capacities.size()); ++link)
        if (random() % 3 == 0) flow.links.push_back(link);
    }
    const Rates rates = fair_share(flows, capacities);
    std::vector<double> used(capacities.size(), 0.0), highest(capacities.size(), 0.0);
    for (std::size_t i = 0; i < flows.size(); ++i)
      for (const int link : flows[i].links) {
        used[static_cast<std::size_t>(link)] += rates[i];
        highest[static_cast<std::size_t>(link)] = std::max(highest[static_cast<std::size_t>(link)], rates[i]);
      }
    for (std::size_t link = 0; link < capacities.size(); ++link) ASSERT_LE(used[link], capacities[link] + 1e-9);
    for (std::size_t i = 0; i < flows.size(); ++i) {
      bool limited = rates[i] >= flows[i].cap - 1e-9;
      for (const int link : flows[i].links) {
        const auto l = static_cast<std::size_t>(link);
        limited = limited || (used[l] >= capacities[l] - 1e-9 && rates[i] >= highest[l] - 1e-9);
      }
      ASSERT_TRUE(limited) << "round " << round << ", flow " << i;
    }
  }
}

// Coming and going: the incremental shares always equal a solution from scratch.
TEST(LinkShares, EqualAFreshSolutionAfterEveryChange) {
  std::mt19937_64 random(11);
  constexpr int kFlows = 12, kLinks = 7;
  const std::vector<double> capacities = {1, 1, 2, 1, 3, 1, 2};
  std::vector<std::vector<std::int32_t>> links(kFlows);
  for (auto& flow_links : links)
    for (std::int32_t link = 0; link < kLinks; ++link)
      if (random() % 3 == 0) flow_links.push_back(link);
  LinkShares shares(capacities, kFlows);
  std::vector<bool> present(kFlows, false);
  for (int step = 0; step < 2000; ++step) {
    for (int change = 0; change < 1 + step % 3; ++change) {
      const auto flow = static_cast<std::int32_t>(random() % kFlows);
      if (present[static_cast<std::size_t>(flow)]) shares.remove(flow);
      else shares.add(flow, links[static_cast<std::size_t>(flow)]);
      present[static_cast<std::size_t>(flow)] = !present[static_cast<std::size_t>(flow)];
    }
    shares.settle();
    std::vector<Flow> flows;
    std::vector<std::int32_t> names;
    for (std::int32_t flow = 0; flow < kFlows; ++flow)
      if (present[static_cast<std::size_t>(flow)]) {
        const auto& flow_links = links[static_cast<std::size_t>(flow)];
        flows.push_back({1.0, std::vector<int>(flow_links.begin(), flow_links.end())});
        names.push_back(flow);
      }
    const Rates expected = fair_share(flows, capacities);
    for (std::size_t i = 0; i < names.size(); ++i) ASSERT_NEAR(shares.share(names[i]), expected[i], 1e-12);
  }
}

}  // namespace
}  // namespace reckon
