#include "plan/token_placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <iostream>
#include <numeric>

#include "plan/balanced_placement.h"
#include "plan/counter_random.h"
#include "plan/document_lengths.h"
#include "plan/placement_work.h"

namespace reckon {
namespace {

using Lengths = std::vector<std::int64_t>;
const Placement kFixed[] = {Placement::contiguous, Placement::zigzag, Placement::zigzag_per_document,
                            Placement::striped};
const Placement kAll[] = {Placement::contiguous, Placement::zigzag,   Placement::zigzag_per_document,
                          Placement::striped,    Placement::balanced, Placement::automatic};

Lengths equal(std::int64_t count, std::int64_t length) {
  return Lengths(static_cast<std::size_t>(count), length);
}

/// Documents drawn from `source` that fill `tokens`, the last one cut.
Lengths filling(const std::string& source, std::int64_t tokens, std::uint64_t seed) {
  Lengths lengths = LengthSource(source, tokens, seed).lengths_holding(tokens);
  lengths.back() -= std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}) - tokens;
  return lengths;
}

/// Reads the same facts off the list of every token: who holds it, and for every query the keys that it sees.
PlacementWork work_by_counting(const DocumentBorders& documents, const TokenPlacement& placement) {
  const std::size_t ring = placement.ranks.size();
  std::vector<std::size_t> owner(static_cast<std::size_t>(documents.row_tokens));
  for (std::size_t rank = 0; rank < ring; ++rank)
    for (const std::int64_t at : token_positions(placement, static_cast<std::int64_t>(rank)))
      owner[static_cast<std::size_t>(at)] = rank;
  PlacementWork work{std::vector<double>(ring, 0.0), Lengths(ring, 0), Lengths(ring, 0),
                     documents.row_tokens / static_cast<std::int64_t>(ring)};
  for (std::size_t d = 0; d + 1 < documents.starts.size(); ++d) {
    std::vector<std::int64_t> last(ring, -1);
    for (std::int64_t at = documents.starts[d]; at < documents.starts[d + 1]; ++at) {
      work.pairs[owner[static_cast<std::size_t>(at)]] += static_cast<double>(at - documents.starts[d] + 1);
      last[owner[static_cast<std::size_t>(at)]] = at;
    }
    for (std::size_t rank = 0; rank < ring; ++rank)
      for (std::int64_t key = documents.starts[d]; key <= last[rank]; ++key)
        if (const std::size_t from = owner[static_cast<std::size_t>(key)]; from != rank)
          ++work.received[rank], ++work.sent[from];
  }
  return work;
}

double rounded(double value, int decimals) {
  const double scale = std::pow(10.0, decimals);
  return std::floor(value * scale + 0.5) / scale;
}

struct TableRow {
  Lengths lengths;
  double rho, contiguous, zigzag, zigzag_per_document, striped;     // imbalance
  double contiguous_max, contiguous_mean, zigzag_max, zigzag_mean;  // keys and values needed, in blocks
};

TEST(TokenPlacement, TableOfImbalanceAndNeededKeys) {
  constexpr std::int64_t kTokens = 16384, kRing = 8;
  Lengths long_first = equal(17, 512), short_first = equal(17, 512);
  long_first.front() = short_first.back() = 8192;
  const TableRow table[] = {
      {{kTokens}, 1.00, 1.87, 1.00, 1.00, 1.00, 7.0, 3.5, 7.0, 5.25},
      {equal(2, 8192), 0.50, 1.75, 1.00, 1.00, 1.00, 3.0, 1.5, 3.5, 3.5},
      {equal(4, 4096), 0.25, 1.50, 1.00, 1.00, 1.00, 1.0, 0.5, 1.5, 1.5},
      {equal(8, 2048), 0.125, 1.00, 1.00, 1.00, 1.00, 0.0, 0.0, 0.5, 0.5},
      {equal(32, 512), 0.031, 1.00, 1.00, 1.00, 1.01, 0.0, 0.0, 0.0, 0.0},
      {long_first, 0.27, 3.29, 1.82, 1.00, 1.00, 3.0, 0.75, 3.5, 1.75},
      {short_first, 0.27, 3.29, 1.82, 1.00, 1.00, 3.0, 0.75, 3.5, 1.75},
  };
  for (const TableRow& row : table) {
    const DocumentBorders documents = document_borders(row.lengths, kTokens);
    double squares = 0;
    for (const std::int64_t length : row.lengths) squares += static_cast<double>(length) * static_cast<double>(length);
    EXPECT_NEAR(squares / (16384.0 * 16384.0), row.rho, 0.005);
    const auto work = [&](Placement kind) { return placement_work(documents, place_tokens(documents, kRing, kind)); };
    const PlacementWork contiguous = work(Placement::contiguous), zigzag = work(Placement::zigzag);
    const PlacementWork per_document = work(Placement::zigzag_per_document), striped = work(Placement::striped);
    EXPECT_EQ(rounded(contiguous.imbalance(), 2), row.contiguous);
    EXPECT_EQ(rounded(zigzag.imbalance(), 2), row.zigzag);
    EXPECT_EQ(rounded(per_document.imbalance(), 2), row.zigzag_per_document);
    EXPECT_EQ(rounded(striped.imbalance(), 2), row.striped);
    EXPECT_EQ(contiguous.key_blocks_max(), row.contiguous_max);
    EXPECT_EQ(contiguous.key_blocks_mean(), row.contiguous_mean);
    EXPECT_EQ(zigzag.key_blocks_max(), row.zigzag_max);
    EXPECT_EQ(zigzag.key_blocks_mean(), row.zigzag_mean);
    EXPECT_EQ(per_document.key_blocks_max(), 7.0);
    EXPECT_EQ(per_document.key_blocks_mean(), 5.25);
    EXPECT_NEAR(striped.key_blocks_mean(), 7.0, 0.1);  // all but the few tokens behind the last query of each document
  }
}

TEST(TokenPlacement, EveryTokenIsOnOneRankAndRanksHoldEquallyMany) {
  for (const std::int64_t ring : {1, 2, 3, 4, 8})
    for (const Placement kind : kAll)
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const std::int64_t tokens = ring * (97 + static_cast<std::int64_t>(random_bits(seed, 5) % 500));
        Lengths lengths = filling("chat", tokens, seed);
        if (seed % 3 == 0 && lengths.size() > 1) lengths.pop_back();  // padding at the end
        const DocumentBorders documents = document_borders(lengths, tokens);
        const TokenPlacement placement = place_tokens(documents, ring, kind);
        EXPECT_NE(placement.kind, Placement::automatic);
        Lengths all;
        ASSERT_EQ(placement.ranks.size(), static_cast<std::size_t>(ring));
        for (std::int64_t rank = 0; rank < ring; ++rank) {
          const Lengths positions = token_positions(placement, rank);
          ASSERT_EQ(static_cast<std::int64_t>(positions.size()), tokens / ring);
          ASSERT_TRUE(std::is_sorted(positions.begin(), positions.end()));
          all.insert(all.end(), positions.begin(), positions.end());
        }
        std::sort(all.begin(), all.end());
        for (std::int64_t i = 0; i < tokens; ++i) ASSERT_EQ(all[static_cast<std::size_t>(i)], i);
      }
}

TEST(TokenPlacement, WorkAgreesWithCountingEveryTokenAndKey) {
  for (const std::int64_t ring : {2, 3, 4})
    for (const Placement kind : kAll)
      for (std::uint64_t seed = 0; seed < 12; ++seed) {
        const std::int64_t tokens = ring * 60;
        Lengths lengths;
        for (std::int64_t held = 0; held < tokens - 60;) {
          lengths.push_back(1 + static_cast<std::int64_t>(random_bits(seed, lengths.size()) % 59));
          held += lengths.back();
        }
        const DocumentBorders documents = document_borders(lengths, tokens);
        const TokenPlacement placement = place_tokens(documents, ring, kind);
        const PlacementWork work = placement_work(documents, placement),
                            counted = work_by_counting(documents, placement);
        ASSERT_EQ(work.pairs, counted.pairs);
        ASSERT_EQ(work.received, counted.received);
        ASSERT_EQ(work.sent, counted.sent);
        ASSERT_EQ(work.rank_tokens, counted.rank_tokens);
      }
}

TEST(TokenPlacement, AlignedDocumentsMoveNothing) {
  const DocumentBorders documents = document_borders(equal(16, 1024), 16384);
  for (const Placement kind : {Placement::contiguous, Placement::balanced, Placement::automatic}) {
    const PlacementWork work = placement_work(documents, place_tokens(documents, 8, kind));
    EXPECT_EQ(work.key_blocks_max(), 0.0);
    EXPECT_EQ(work.sent, Lengths(8, 0));
    EXPECT_EQ(work.imbalance(), 1.0);
  }
}

TEST(TokenPlacement, DocumentsThatFitStayWholeOnOneRankEvenWhenTheyAreNotAligned) {
  // contiguous would cut six of the eight; as a set they fill four ranks of 1,000 tokens exactly
  const DocumentBorders documents = document_borders(Lengths{700, 650, 600, 550, 450, 400, 350, 300}, 4000);
  const PlacementWork work = placement_work(documents, place_tokens(documents, 4, Placement::balanced));
  EXPECT_EQ(work.key_blocks_max(), 0.0);
  EXPECT_GT(placement_work(documents, place_tokens(documents, 4, Placement::contiguous)).key_blocks_max(), 0.0);
}

TEST(TokenPlacement, OneLongDocumentAmongShortOnesIsCutAndTheShortOnesAreNot) {
  Lengths lengths = equal(17, 512);
  lengths[5] = 8192;
  const DocumentBorders documents = document_borders(lengths, 16384);
  const TokenPlacement placement = place_tokens(documents, 8, Placement::balanced, {1.0, 100.0, 0.8});
  const PlacementWork work = placement_work(documents, placement);
  EXPECT_LT(work.imbalance(), 1.01);
  // only the long document moves: 8 ranks with 1/8 each in a zigzag need 5.25/8 of its 8,192 tokens on average
  EXPECT_EQ(work.key_blocks_mean(), 5.25 / 8 * 8192 / 2048);
}

TEST(TokenPlacement, DearTransfersAndCheapOnesAreWeighed) {
  const DocumentBorders documents = document_borders(filling("code", 65536, 3), 65536);
  const auto work = [&](double key_token) {
    return placement_work(documents, place_tokens(documents, 8, Placement::balanced, {1.0, key_token, 0.8}));
  };
  EXPECT_LE(work(1.0).imbalance(), 1.02);
  EXPECT_GE(work(1e6).imbalance(), work(1.0).imbalance());
  EXPECT_LT(work(1e6).key_blocks_max(), work(1.0).key_blocks_max());
}

TEST(TokenPlacement, BalancedIsNeverWorseThanTheBestFixedPlacement) {
  const char* sources[] = {"fineweb", "code", "arxiv", "wikipedia", "chat", "mixed"};
  double better = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const std::int64_t ring = Lengths{2, 3, 4, 8, 16}[random_bits(seed, 0) % 5];
    const std::int64_t tokens = ring * Lengths{256, 1024, 4096}[random_bits(seed, 1) % 3];
    const PlacementCosts costs{1.0, std::pow(10.0, 4 * uniform_number(seed, 2)), uniform_number(seed, 3)};
    const DocumentBorders documents = document_borders(filling(sources[seed % 6], tokens, seed), tokens);
    const auto cost = [&](Placement kind) {
      return predicted_cost(placement_work(documents, place_tokens(documents, ring, kind, costs)), costs);
    };
    double best = cost(kFixed[0]);
    for (const Placement kind : kFixed) best = std::min(best, cost(kind));
    ASSERT_LE(cost(Placement::balanced), best) << "seed " << seed;
    better += cost(Placement::balanced) < 0.95 * best ? 1 : 0;
  }
  EXPECT_GT(better, 150);  // and clearly better where there is something to choose (many of the packs are one document)
}

TEST(TokenPlacement, WholeRowScopeIsOneDocumentWithItsPadding) {
  const DocumentBorders row = attention_borders(Lengths{100, 50}, 256, AttentionScope::whole_row);
  EXPECT_EQ(row.starts, (Lengths{0, 256}));
  EXPECT_EQ(attention_borders(Lengths{100, 50}, 256, AttentionScope::per_document).starts, (Lengths{0, 100, 150}));
}

TEST(TokenPlacement, PaddingHasNoWork) {
  const DocumentBorders documents = document_borders(Lengths{64}, 256);
  const PlacementWork work = placement_work(documents, place_tokens(documents, 4, Placement::contiguous));
  EXPECT_EQ(work.pairs, (std::vector<double>{64 * 65 / 2.0, 0, 0, 0}));
  const PlacementWork balanced =
      placement_work(documents, place_tokens(documents, 4, Placement::balanced, {1, 0, 0.8}));
  EXPECT_LT(balanced.imbalance(), 1.01);  // transfers cost nothing here, so the document is spread
}

TEST(TokenPlacement, RefusesRowsThatDoNotDivide) {
  const DocumentBorders documents = document_borders(Lengths{10}, 10);
  EXPECT_THROW(place_tokens(documents, 3, Placement::contiguous), std::logic_error);
  EXPECT_THROW(document_borders(Lengths{11}, 10), std::logic_error);
  EXPECT_THROW(document_borders(Lengths{0}, 10), std::logic_error);
}

TEST(TokenPlacement, MillionTokenPackIsPlannedQuickly) {
  constexpr std::int64_t kTokens = 1 << 20, kRing = 64;
  Lengths lengths = LengthSource("code", kTokens, 1).lengths(0, 2000);
  const auto sum = static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}));
  for (std::int64_t& length : lengths)
    length = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(length) * (kTokens - 2000) / sum));
  const DocumentBorders documents = document_borders(lengths, kTokens);
  const auto seconds_of = [](auto work) {
    const std::clock_t start = std::clock();  // processor time: other programs do not count
    work();
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  TokenPlacement placement;
  const double planned = seconds_of([&] { placement = place_tokens(documents, kRing, Placement::automatic); });
  std::cout << "1M tokens, 2,000 documents, 64 ranks: " << planned * 1e3 << " ms\n";
  EXPECT_LT(placement_work(documents, placement).imbalance(), 1.5);
  std::uint64_t mixed = 0;  // a yardstick of the same run
  const double reference = seconds_of([&] {
    for (std::uint64_t i = 0; i < 50u << 20; ++i) mixed ^= random_bits(i, mixed);
  });
  EXPECT_NE(mixed, 0u);
  EXPECT_LT(planned, reference) << "more time than 50 million random numbers";
}

}  // namespace
}  // namespace reckon
