// The figures of the small row on docs/context_parallelism.md, computed again and looked for in its text.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "plan/choices.h"
#include "plan/placement_work.h"
#include "plan/ring_transfers.h"

namespace reckon {
namespace {

constexpr std::int64_t kRing = 4;

std::string page() {
  std::ifstream file(RECKON_SOURCE_DIR "/docs/context_parallelism.md");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

DocumentBorders small_row() {
  return document_borders(std::vector<std::int64_t>{9, 4, 3}, 16);
}

/// "0011223333221100": who holds each token.
std::string holders(const TokenPlacement& placement) {
  std::string text(16, '?');
  for (std::int64_t rank = 0; rank < kRing; ++rank)
    for (const std::int64_t place : token_positions(placement, rank))
      text[static_cast<std::size_t>(place)] = static_cast<char>('0' + rank);
  return text;
}

TEST(ContextPage, ShowsWhoHoldsWhatUnderEveryPlacement) {
  const std::string text = page();
  for (const Placement kind : {Placement::contiguous, Placement::zigzag, Placement::zigzag_per_document,
                               Placement::striped, Placement::balanced}) {
    const TokenPlacement placement = place_tokens(small_row(), kRing, kind, {1.0, 1.0, 0.8});
    const PlacementWork work = placement_work(small_row(), placement);
    std::string line = fmt::format("    {:<23}{}   ", name_of(kind), holders(placement));
    for (std::size_t rank = 0; rank < kRing; ++rank)
      line += fmt::format("{}{:2.0f}", rank > 0 ? " " : "", work.pairs[rank]);
    const std::string received = fmt::format("{}", fmt::join(work.received, " "));
    line += fmt::format("          {:<18}{:.2f}", received, work.imbalance());
    EXPECT_NE(text.find(line), std::string::npos) << "not on the page:\n" << line;
  }
}

TEST(ContextPage, ShowsWhoSendsWhat) {
  const TokenPlacement placement = place_tokens(small_row(), kRing, Placement::contiguous);
  const std::string text = page();
  for (std::int64_t rank = 0; rank < kRing; ++rank) {
    const RingTransfers plan = ring_transfers(small_row(), placement, rank, TransferMode::direct);
    for (const RingRound& round : plan.rounds)
      for (const LocalRange& range : round.send) {
        const std::int64_t first = rank * 4 + range.first;  // contiguous: rank r holds tokens 4 r to 4 r + 3
        const bool in_a = first < 9;
        const std::int64_t start = in_a ? 0 : 9;
        const std::string sent = fmt::format("{} -> {}: {}[{}-{})", rank, round.to, in_a ? 'A' : 'B', first - start,
                                             first - start + range.count);
        EXPECT_NE(text.find(sent), std::string::npos) << "not on the page: " << sent;
      }
  }
}

// Every rank's tasks, played into a square of queries and keys.
TEST(ContextPage, ShowsWhichRoundBringsEachKey) {
  const TokenPlacement placement = place_tokens(small_row(), kRing, Placement::contiguous);
  std::vector<std::string> square(16, std::string(16, '.'));
  for (std::int64_t rank = 0; rank < kRing; ++rank) {
    const RingTransfers plan = ring_transfers(small_row(), placement, rank, TransferMode::direct);
    const auto play = [&](const std::vector<AttentionTask>& tasks, const std::vector<std::int64_t>& keys, char mark) {
      for (const AttentionTask& task : tasks)
        for (std::int64_t query = 0; query < task.queries; ++query)
          for (std::int64_t key = 0; key < task.keys && key <= query + task.shift; ++key)
            square[static_cast<std::size_t>(rank * 4 + task.query + query)]
                  [static_cast<std::size_t>(keys[static_cast<std::size_t>(task.key + key)])] = mark;
    };
    play(plan.own, token_positions(placement, rank), 'o');
    for (const RingRound& round : plan.rounds) {
      std::vector<std::int64_t> arrived;
      for (const LocalRange& range : round.receive)
        for (std::int64_t i = 0; i < range.count; ++i) arrived.push_back(plan.owner(round) * 4 + range.first + i);
      play(round.tasks, arrived, static_cast<char>('0' + round.distance));
    }
  }
  const std::string text = page();
  for (std::size_t query = 0; query < 16; ++query) {
    const std::string line = fmt::format("    rank {}  {}  {}", query / 4, "AAAAAAAAABBBBCCC"[query], square[query]);
    EXPECT_NE(text.find(line), std::string::npos) << "not on the page:\n" << line;
  }
}

}  // namespace
}  // namespace reckon
