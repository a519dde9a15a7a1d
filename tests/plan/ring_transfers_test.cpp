#include "plan/ring_transfers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <iostream>
#include <map>
#include <numeric>
#include <utility>

#include "plan/counter_random.h"
#include "plan/document_lengths.h"
#include "plan/placement_work.h"

namespace reckon {
namespace {

using Lengths = std::vector<std::int64_t>;
const Placement kPlacements[] = {Placement::contiguous, Placement::zigzag, Placement::zigzag_per_document,
                                 Placement::striped, Placement::balanced};
const TransferMode kModes[] = {TransferMode::direct, TransferMode::ring};

/// A random pack: up to `most` documents, some rows padded.
DocumentBorders random_pack(std::uint64_t seed, std::int64_t tokens, std::int64_t most) {
  Lengths lengths;
  std::int64_t left = tokens - static_cast<std::int64_t>(random_bits(seed, 0) % 2 * (random_bits(seed, 1) % 7));
  while (left > 0 && static_cast<std::int64_t>(lengths.size()) < most) {
    const auto length = 1 + static_cast<std::int64_t>(random_bits(seed, 2 + lengths.size()) %
                                                      (1 + static_cast<std::uint64_t>(tokens) / 2));
    lengths.push_back(std::min(length, left));
    left -= lengths.back();
  }
  return document_borders(lengths, tokens);
}

std::vector<RingTransfers> all_ranks(const DocumentBorders& documents, const TokenPlacement& placement,
                                     TransferMode mode) {
  std::vector<RingTransfers> plans;
  for (std::size_t rank = 0; rank < placement.ranks.size(); ++rank)
    plans.push_back(ring_transfers(documents, placement, static_cast<std::int64_t>(rank), mode));
  return plans;
}

const RingRound* round_at(const RingTransfers& plan, std::int64_t distance) {
  for (const RingRound& round : plan.rounds)
    if (round.distance == distance) return &round;
  return nullptr;
}

using Seen = std::map<std::pair<std::int64_t, std::int64_t>, int>;  // (query position, key position) -> times computed

void compute(const std::vector<AttentionTask>& tasks, const Lengths& queries, const Lengths& keys, Seen& seen) {
  for (const AttentionTask& task : tasks) {
    ASSERT_GT(task.queries, 0);
    ASSERT_GT(task.keys, 0);
    ASSERT_GE(task.shift, 0);  // every query sees a key
    ASSERT_LE(task.query + task.queries, static_cast<std::int64_t>(queries.size()));
    ASSERT_LE(task.key + task.keys, static_cast<std::int64_t>(keys.size()));
    double pairs = 0;
    for (std::int64_t j = 0; j < task.queries; ++j)
      for (std::int64_t i = 0; i < task.keys && i <= j + task.shift; ++i, ++pairs)
        ++seen[{queries[static_cast<std::size_t>(task.query + j)], keys[static_cast<std::size_t>(task.key + i)]}];
    ASSERT_EQ(task.pairs(), pairs);
  }
}

TEST(RingTransfers, EveryVisiblePairIsComputedOnceAndNothingElse) {
  for (const std::int64_t ring : {1, 2, 3, 4, 8})
    for (const Placement kind : kPlacements)
      for (const TransferMode mode : kModes)
        for (std::uint64_t seed = 0; seed < 8; ++seed) {
          const DocumentBorders documents = random_pack(seed, ring * 16, 40);
          const TokenPlacement placement = place_tokens(documents, ring, kind, {1.0, 5.0, 0.8});
          Seen seen;
          for (const RingTransfers& plan : all_ranks(documents, placement, mode)) {
            const Lengths mine = token_positions(placement, plan.rank);
            compute(plan.own, mine, mine, seen);
            for (const RingRound& round : plan.rounds) {
              const Lengths theirs = token_positions(placement, (plan.rank - round.distance + ring) % ring);
              Lengths arrived;
              for (const LocalRange& range : round.receive)
                arrived.insert(arrived.end(), theirs.begin() + range.first, theirs.begin() + range.first + range.count);
              EXPECT_EQ(static_cast<std::int64_t>(arrived.size()), round.received());
              compute(round.tasks, mine, arrived, seen);
            }
          }
          Seen visible;
          for (std::int64_t d = 0; d < documents.documents(); ++d)
            for (std::int64_t query = 0; query < documents.length(d); ++query)
              for (std::int64_t key = 0; key <= query; ++key) {
                const std::int64_t start = documents.starts[static_cast<std::size_t>(d)];
                visible[{start + query, start + key}] = 1;
              }
          ASSERT_EQ(seen, visible) << "ring " << ring << " placement " << static_cast<int>(kind) << " seed " << seed;
        }
}

TEST(RingTransfers, WhatOneRankSendsAnotherReceives) {
  for (const std::int64_t ring : {2, 3, 5, 8})
    for (const Placement kind : kPlacements)
      for (std::uint64_t seed = 0; seed < 10; ++seed) {
        const DocumentBorders documents = random_pack(seed, ring * 24, 30);
        const TokenPlacement placement = place_tokens(documents, ring, kind);
        const std::vector<RingTransfers> plans = all_ranks(documents, placement, TransferMode::direct);
        const PlacementWork work = placement_work(documents, placement);
        for (const RingTransfers& plan : plans) {
          const auto rank = static_cast<std::size_t>(plan.rank);
          EXPECT_EQ(plan.received(), work.received[rank]);
          EXPECT_EQ(plan.sends().tokens, work.sent[rank]);
          EXPECT_EQ(plan.pairs(), work.pairs[rank]);
          EXPECT_EQ(plan.sends().gradient_tokens, work.received[rank]);
          for (const RingRound& round : plan.rounds) {
            EXPECT_LE(round.received(), plan.rank_tokens);  // the fixed buffer holds two of these
            if (round.from < 0) continue;
            const RingRound* other = round_at(plans[static_cast<std::size_t>(round.from)], round.distance);
            ASSERT_NE(other, nullptr);
            EXPECT_EQ(other->to, plan.rank);
            EXPECT_EQ(other->send, round.receive);
            EXPECT_FALSE(round.tasks.empty());
          }
        }
      }
}

TEST(RingSends, AreTheSumsOfAllRanksTransfers) {
  for (const std::int64_t ring : {2, 3, 8})
    for (const Placement kind : kPlacements)
      for (const TransferMode mode : kModes)
        for (std::uint64_t seed = 0; seed < 10; ++seed) {
          const DocumentBorders documents = random_pack(seed, ring * 24, 30);
          const TokenPlacement placement = place_tokens(documents, ring, kind);
          std::vector<RingSends> summed;
          for (const RingTransfers& plan : all_ranks(documents, placement, mode)) summed.push_back(plan.sends());
          EXPECT_EQ(ring_sends(documents, placement, mode), summed) << "ring " << ring << " seed " << seed;
        }
}

TEST(RingTransfers, RingPassesWholeBlocksAsFarAsTheyAreNeeded) {
  // 4 ranks of 4 tokens; documents of 10 and 6 tokens reach over three and two ranks
  const DocumentBorders documents = document_borders(Lengths{10, 6}, 16);
  const TokenPlacement placement = place_tokens(documents, 4, Placement::contiguous);
  EXPECT_EQ(ring_rounds(documents, placement), 2);
  for (const RingTransfers& plan : all_ranks(documents, placement, TransferMode::ring)) {
    ASSERT_EQ(plan.rounds.size(), 2u);
    EXPECT_EQ(plan.sends().messages, 2);
    EXPECT_EQ(plan.sends().tokens, 8);
    for (const RingRound& round : plan.rounds) {
      EXPECT_EQ(round.to, (plan.rank + 1) % 4);
      EXPECT_EQ(round.receive, (std::vector<LocalRange>{{0, 4}}));
    }
  }
  const RingTransfers third = ring_transfers(documents, placement, 2, TransferMode::ring);
  // rank 2 holds offsets 8, 9 of the first and 0, 1 of the second document
  EXPECT_EQ(third.own, (std::vector<AttentionTask>{{0, 2, 0, 2, 0}, {2, 2, 2, 2, 0}}));
  EXPECT_EQ(third.rounds[0].tasks, (std::vector<AttentionTask>{{0, 2, 0, 4, 3}}));
}

TEST(RingTransfers, DirectSendsByHand) {
  const DocumentBorders documents = document_borders(Lengths{10, 6}, 16);
  const TokenPlacement placement = place_tokens(documents, 4, Placement::contiguous);
  const RingTransfers last = ring_transfers(documents, placement, 3, TransferMode::direct);
  ASSERT_EQ(last.rounds.size(), 1u);  // needs offsets 0, 1 of the second document: tokens 2, 3 of rank 2
  EXPECT_EQ(last.rounds[0].from, 2);
  EXPECT_EQ(last.rounds[0].to, -1);
  EXPECT_EQ(last.rounds[0].receive, (std::vector<LocalRange>{{2, 2}}));
  EXPECT_EQ(last.rounds[0].tasks, (std::vector<AttentionTask>{{0, 4, 0, 2, 1}}));
  const RingTransfers first = ring_transfers(documents, placement, 0, TransferMode::direct);
  EXPECT_EQ(first.sends().tokens, 8);  // its four tokens to ranks 1 and 2
  EXPECT_EQ(first.received(), 0);
}

TEST(RingTransfers, ZigzagTasksOfOneDocumentAreJoined) {
  const DocumentBorders documents = document_borders(Lengths{64}, 64);
  const TokenPlacement placement = place_tokens(documents, 4, Placement::zigzag);  // half-chunks of 8 tokens
  const RingTransfers plan = ring_transfers(documents, placement, 1, TransferMode::direct);
  // from rank 0 (chunks 0 and 7): both query chunks see all of chunk 0, none sees chunk 7
  EXPECT_EQ(round_at(plan, 1)->tasks, (std::vector<AttentionTask>{{0, 16, 0, 8, 7}}));
  // from rank 2 (chunks 2 and 5): only query chunk 6 sees them, and it sees both
  EXPECT_EQ(round_at(plan, 3)->tasks, (std::vector<AttentionTask>{{8, 8, 0, 16, 15}}));
}

TEST(RingTransfers, AlignedDocumentsHaveNoRounds) {
  const DocumentBorders documents = document_borders(Lengths(8, 32), 256);
  for (const Placement kind : {Placement::contiguous, Placement::balanced})
    for (const TransferMode mode : kModes)
      for (const RingTransfers& plan : all_ranks(documents, place_tokens(documents, 8, kind), mode)) {
        EXPECT_TRUE(plan.rounds.empty());
        EXPECT_EQ(plan.sends(), RingSends{});
      }
  EXPECT_EQ(choose_transfer_mode(documents, place_tokens(documents, 8, Placement::contiguous)), TransferMode::direct);
}

TEST(RingTransfers, TheRingIsKeptWhereEverybodyNeedsEverything) {
  const DocumentBorders one = document_borders(Lengths{4096}, 4096);
  EXPECT_EQ(choose_transfer_mode(one, place_tokens(one, 8, Placement::zigzag)), TransferMode::ring);
  Lengths lengths(17, 128);
  lengths[0] = 2048;
  const DocumentBorders mixed = document_borders(lengths, 4096);
  EXPECT_EQ(choose_transfer_mode(mixed, place_tokens(mixed, 8, Placement::balanced)), TransferMode::direct);
}

TEST(RingTransfers, MillionTokenPackIsPlannedQuickly) {
  constexpr std::int64_t kTokens = 1 << 20, kRing = 64;
  Lengths lengths = LengthSource("fineweb", kTokens, 1).lengths(0, 2000);
  const auto sum = static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}));
  for (std::int64_t& length : lengths)
    length = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(length) * (kTokens - 2000) / sum));
  const DocumentBorders documents = document_borders(lengths, kTokens);
  const TokenPlacement placement = place_tokens(documents, kRing, Placement::balanced);
  const auto seconds_of = [](auto work) {
    const std::clock_t start = std::clock();  // processor time: other programs do not count
    work();
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  double pairs = 0;
  const double planned = seconds_of([&] {
    const TransferMode mode = choose_transfer_mode(documents, placement);
    pairs = ring_transfers(documents, placement, 5, mode).pairs();
  });
  std::cout << "transfers of one rank: " << planned * 1e3 << " ms\n";
  EXPECT_EQ(pairs, placement_work(documents, placement).pairs[5]);
  // cutting every document over all ranks makes a hundred times as many pieces; the plan must profit from having few
  const double dense = seconds_of([&] {
    const TokenPlacement spread = place_tokens(documents, kRing, Placement::zigzag_per_document);
    EXPECT_GT(ring_transfers(documents, spread, 5, TransferMode::ring).pairs(), 0);
  });
  EXPECT_LT(planned, dense);
}

}  // namespace
}  // namespace reckon
