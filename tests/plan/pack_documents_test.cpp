#include "plan/pack_documents.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "plan/choices.h"
#include "plan/document_lengths.h"

namespace reckon {
namespace {

using Lengths = std::vector<std::int64_t>;
const Packer kAll[] = {Packer::concatenate, Packer::first_fit, Packer::best_fit, Packer::balanced};

std::vector<Lengths> lengths_of(const std::vector<PackedRow>& rows) {
  std::vector<Lengths> all;
  for (const PackedRow& row : rows) all.push_back(row.lengths());
  return all;
}

std::vector<PackedRow> pack(const Lengths& lengths, std::int64_t row_tokens, Packer packer) {
  return pack_documents(whole_documents(lengths), row_tokens, packer);
}

TEST(PackDocuments, SmallCasesByHand) {
  const Lengths lengths = {5, 4, 3, 6, 2};
  EXPECT_EQ(lengths_of(pack(lengths, 8, Packer::concatenate)), (std::vector<Lengths>{{5, 3}, {1, 3, 4}, {2, 2}}));
  EXPECT_EQ(lengths_of(pack(lengths, 8, Packer::first_fit)), (std::vector<Lengths>{{6, 2}, {5, 3}, {4}}));
  EXPECT_EQ(lengths_of(pack({7, 5, 4, 3, 1}, 8, Packer::best_fit)), (std::vector<Lengths>{{7, 1}, {5, 3}, {4}}));
  EXPECT_EQ(lengths_of(pad_documents(whole_documents(lengths), 8)), (std::vector<Lengths>{{5}, {4}, {3}, {6}, {2}}));
  // balanced: 20 tokens need 3 rows; 6, 5, 4 open them, 3 joins 4 (10 pairs < 15 < 21), 2 joins 5 (15 < 16 < 21)
  EXPECT_EQ(lengths_of(pack(lengths, 8, Packer::balanced)), (std::vector<Lengths>{{6}, {5, 2}, {4, 3}}));
}

TEST(PackDocuments, LongDocumentsAreCutIntoRows) {
  const std::vector<PackedRow> rows = pack({20}, 8, Packer::first_fit);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].pieces, (std::vector<Piece>{{0, 0, 8}}));
  EXPECT_EQ(rows[1].pieces, (std::vector<Piece>{{0, 8, 8}}));
  EXPECT_EQ(rows[2].pieces, (std::vector<Piece>{{0, 16, 4}}));
  EXPECT_EQ(packing_report(rows, 8).cut_documents, 1);
}

TEST(PackDocuments, EveryTokenIsPackedExactlyOnceAndNoRowOverflows) {
  const Lengths lengths = LengthSource("fineweb", 1, 3).lengths(0, 500);
  for (const Packer packer : kAll) {
    std::map<std::int64_t, std::map<std::int64_t, std::int64_t>> held;  // document -> first -> tokens
    for (const PackedRow& row : pack(lengths, 2048, packer)) {
      EXPECT_LE(row.tokens(), 2048);
      for (const Piece& piece : row.pieces) held[piece.document][piece.first] = piece.tokens;
    }
    ASSERT_EQ(held.size(), lengths.size()) << name_of(packer);
    for (const auto& [document, pieces] : held) {
      std::int64_t next = 0;
      for (const auto& [first, tokens] : pieces) {
        ASSERT_EQ(first, next) << name_of(packer);
        next += tokens;
      }
      ASSERT_EQ(next, lengths[static_cast<std::size_t>(document)]) << name_of(packer);
    }
  }
}

TEST(PackDocuments, PackersKeepTheirPromises) {
  const Lengths lengths = LengthSource("fineweb", 1, 9).lengths_holding(64 * 8192);
  const auto report = [&](Packer packer) { return packing_report(pack(lengths, 8192, packer), 8192); };
  EXPECT_GT(report(Packer::concatenate).real_token_share, 0.98);  // only the last row is padded
  EXPECT_GT(report(Packer::concatenate).cut_documents, 32);
  const auto cut_at_least = std::count_if(lengths.begin(), lengths.end(), [](std::int64_t l) { return l > 8192; });
  for (const Packer packer : {Packer::first_fit, Packer::best_fit, Packer::balanced}) {
    EXPECT_EQ(report(packer).cut_documents, cut_at_least) << name_of(packer);
    EXPECT_GT(report(packer).real_token_share, 0.95) << name_of(packer);
  }
  EXPECT_LT(packing_report(pad_documents(whole_documents(lengths), 8192), 8192).real_token_share,
            0.15);  // mean length about 694
  // Where no document dominates its row, balanced rows are alike; first-fit puts the long ones together.
  Lengths moderate;
  std::copy_if(lengths.begin(), lengths.end(), std::back_inserter(moderate), [](auto l) { return l <= 2048; });
  moderate.resize(moderate.size() / 2);
  EXPECT_LT(packing_report(pack(moderate, 8192, Packer::balanced), 8192).imbalance, 1.1);
  EXPECT_GT(packing_report(pack(moderate, 8192, Packer::first_fit), 8192).imbalance, 2.0);
}

TEST(PackDocuments, ReportByHand) {
  const PackingReport report = packing_report(std::vector<PackedRow>{{{{0, 0, 6}, {1, 0, 2}}}, {{{2, 0, 4}}}}, 8);
  EXPECT_EQ(report.rows, 2);
  EXPECT_EQ(report.documents, 3);
  EXPECT_EQ(report.cut_documents, 0);
  EXPECT_DOUBLE_EQ(report.real_token_share, 12.0 / 16);
  EXPECT_DOUBLE_EQ(report.sum_of_squares_share, (36.0 + 4 + 16) / (2 * 64));
  EXPECT_DOUBLE_EQ(report.mean_square_length, 56.0 / 12);
  EXPECT_DOUBLE_EQ(report.imbalance, 24.0 / ((24 + 10) / 2.0));  // pairs 21 + 3 and 10
}

TEST(PackStep, LeavesWhatDoesNotFitForTheNextStep) {
  for (const Packer packer : kAll) {
    std::vector<Piece> pieces = whole_documents(LengthSource("fineweb", 1, 4).lengths(0, 120));
    std::int64_t tokens = 0, packed = 0;
    for (const Piece& piece : pieces) tokens += piece.tokens;
    for (int step = 0; step < 3; ++step) {
      const PackedStep result = pack_step(pieces, 4096, 3, {.packer = packer});
      ASSERT_EQ(result.rows.size(), 3u);
      for (const PackedRow& row : result.rows) packed += row.tokens();
      pieces = result.left;
    }
    for (const Piece& piece : pieces) packed += piece.tokens;
    EXPECT_EQ(packed, tokens) << name_of(packer);
    EXPECT_TRUE(std::is_sorted(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
      return a.document < b.document;
    })) << name_of(packer);
  }
}

TEST(PackStep, ConcatenationContinuesACutDocument) {
  const PackedStep first = pack_step(whole_documents(Lengths{5, 30}), 8, 1, {.packer = Packer::concatenate});
  EXPECT_EQ(first.left, (std::vector<Piece>{{1, 3, 27}}));  // one piece again, not one a row
}

TEST(PackStep, PaddedRowsHoldOneDocumentEach) {
  const PackedStep step = pack_step(whole_documents(Lengths{5, 3, 20, 2}), 8, 3, {.rows = Rows::padded});
  EXPECT_EQ(lengths_of(step.rows), (std::vector<Lengths>{{5}, {3}, {8}}));
  EXPECT_EQ(step.left, (std::vector<Piece>{{2, 8, 12}, {3, 0, 2}}));
}

TEST(DealRows, GroupsAreBalanced) {
  std::vector<PackedRow> rows = pack(LengthSource("code", 1, 2).lengths_holding(64 * 8192), 8192, Packer::best_fit);
  rows.resize(64);
  const double total = std::accumulate(rows.begin(), rows.end(), 0.0,
                                       [](double sum, const PackedRow& row) { return sum + row.pairs(); });
  double most_in_order = 0, most = 0;
  for (std::size_t group = 0; group < 8; ++group) {
    double pairs = 0;
    for (std::size_t i = 0; i < 8; ++i) pairs += rows[group * 8 + i].pairs();
    most_in_order = std::max(most_in_order, pairs);
  }
  for (const std::vector<PackedRow>& group : deal_rows(rows, 8)) {
    ASSERT_EQ(group.size(), 8u);
    double pairs = 0;
    for (const PackedRow& row : group) pairs += row.pairs();
    most = std::max(most, pairs);
  }
  EXPECT_LT(most, 1.02 * total / 8);
  EXPECT_GT(most_in_order, 1.5 * total / 8);
  EXPECT_THROW(deal_rows(rows, 7), std::logic_error);
}

}  // namespace
}  // namespace reckon
