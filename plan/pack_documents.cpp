#include "plan/pack_documents.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>

namespace reckon {

namespace {

double causal_pairs(std::int64_t tokens) {
  const auto l = static_cast<double>(tokens);
  return l * (l + 1) / 2;
}

/// Pieces no longer than a row.
std::vector<Piece> cut_to_rows(std::span<const Piece> pieces, std::int64_t row_tokens) {
  std::vector<Piece> short_ones;
  for (Piece piece : pieces) {
    for (; piece.tokens > row_tokens; piece.first += row_tokens, piece.tokens -= row_tokens)
      short_ones.push_back({piece.document, piece.first, row_tokens});
    if (piece.tokens > 0) short_ones.push_back(piece);
  }
  return short_ones;
}

std::vector<Piece> longest_first(std::vector<Piece> pieces) {
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.tokens > b.tokens; });
  return pieces;
}

std::vector<PackedRow> concatenate(std::span<const Piece> pieces, std::int64_t row_tokens) {
  std::vector<PackedRow> rows;
  std::int64_t room = 0;
  for (Piece piece : pieces)
    while (piece.tokens > 0) {
      if (room == 0) rows.emplace_back(), room = row_tokens;
      const std::int64_t taken = std::min(room, piece.tokens);
      rows.back().pieces.push_back({piece.document, piece.first, taken});
      piece.first += taken, piece.tokens -= taken, room -= taken;
    }
  return rows;
}

/// Finds the first row with room for a piece in logarithmic time: a tree of maxima over the rooms.
class FirstRoom {
 public:
  FirstRoom(std::size_t rows, std::int64_t room) : leaves_(std::bit_ceil(std::max<std::size_t>(rows, 1))) {
    most_.assign(2 * leaves_, room);
  }
  std::size_t take(std::int64_t tokens) {
    std::size_t node = 1;
    while (node < leaves_) node = 2 * node + (most_[2 * node] >= tokens ? 0 : 1);
    const std::size_t row = node - leaves_;
    most_[node] -= tokens;
    while (node /= 2) most_[node] = std::max(most_[2 * node], most_[2 * node + 1]);
    return row;
  }

 private:
  std::size_t leaves_;
  std::vector<std::int64_t> most_;
};

std::vector<PackedRow> first_fit(const std::vector<Piece>& pieces, std::int64_t row_tokens) {
  std::vector<PackedRow> rows;
  FirstRoom room(pieces.size(), row_tokens);
  for (const Piece& piece : pieces) {
    const std::size_t row = room.take(piece.tokens);
    if (row >= rows.size()) rows.resize(row + 1);
    rows[row].pieces.push_back(piece);
  }
  return rows;
}

std::vector<PackedRow> best_fit(const std::vector<Piece>& pieces, std::int64_t row_tokens) {
  std::vector<PackedRow> rows;
  std::set<std::pair<std::int64_t, std::size_t>> rooms;  // room, row
  for (const Piece& piece : pieces) {
    auto tightest = rooms.lower_bound({piece.tokens, 0});
    if (tightest == rooms.end()) {
      rows.emplace_back();
      tightest = rooms.insert({row_tokens, rows.size() - 1}).first;
    }
    const auto [room, row] = *tightest;
    rows[row].pieces.push_back(piece);
    rooms.erase(tightest);
    rooms.insert({room - piece.tokens, row});
  }
  return rows;
}

/// Rows that get the pieces given to them, each in the row with the fewest pairs that has room.
class BalancedRows {
 public:
  /// No piece will be shorter than `shortest`: rows with less room than that are left alone.
  BalancedRows(std::int64_t rows, std::int64_t row_tokens, std::int64_t shortest)
      : row_tokens_(row_tokens), shortest_(shortest) {
    for (std::int64_t row = 0; row < rows; ++row) add_row();
  }

  bool put(const Piece& piece) {
    for (; !parked_.empty() && parked_.rbegin()->first >= piece.tokens; parked_.erase(std::prev(parked_.end())))
      open_.insert(parked_.rbegin()->second);
    for (; !open_.empty() && room_[open_.begin()->second] < piece.tokens; open_.erase(open_.begin()))
      parked_.insert({room_[open_.begin()->second], *open_.begin()});
    if (open_.empty()) return false;
    const auto [pairs, row] = *open_.begin();
    open_.erase(open_.begin());
    rows_[row].pieces.push_back(piece);
    room_[row] -= piece.tokens;
    if (room_[row] >= shortest_) open_.insert({pairs + causal_pairs(piece.tokens), row});
    return true;
  }
  void add_row() {
    open_.insert({0.0, rows_.size()});
    rows_.emplace_back(), room_.push_back(row_tokens_);
  }
  std::vector<PackedRow> take() { return std::move(rows_); }

 private:
  std::int64_t row_tokens_, shortest_;
  std::vector<PackedRow> rows_;
  std::vector<std::int64_t> room_;
  std::set<std::pair<double, std::size_t>> open_;                       // pairs, row: the lightest first
  std::multimap<std::int64_t, std::pair<double, std::size_t>> parked_;  // by room: too little for the last pieces
};

std::int64_t shortest_of(std::span<const Piece> pieces) {
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
  for (const Piece& piece : pieces) shortest = std::min(shortest, piece.tokens);
  return shortest;
}

std::int64_t tokens_of(std::span<const Piece> pieces) {
  return std::accumulate(pieces.begin(), pieces.end(), std::int64_t{0},
                         [](std::int64_t sum, const Piece& piece) { return sum + piece.tokens; });
}

std::vector<PackedRow> balanced(const std::vector<Piece>& pieces, std::int64_t row_tokens) {
  BalancedRows rows((tokens_of(pieces) + row_tokens - 1) / row_tokens, row_tokens, shortest_of(pieces));
  for (const Piece& piece : pieces)
    if (!rows.put(piece)) rows.add_row(), rows.put(piece);
  return rows.take();
}

/// The first pieces of the stream, as many as hold the rows' tokens, then later ones into the room that is left.
PackedStep balanced_step(std::span<const Piece> pieces, std::int64_t row_tokens, std::int64_t count) {
  const std::vector<Piece> all = cut_to_rows(pieces, row_tokens);
  std::size_t due = 0;
  for (std::int64_t held = 0; due < all.size() && held + all[due].tokens <= count * row_tokens; ++due)
    held += all[due].tokens;
  BalancedRows rows(count, row_tokens, shortest_of(all));
  PackedStep step;
  const auto begin = all.begin(), middle = all.begin() + static_cast<std::ptrdiff_t>(due);
  for (const std::vector<Piece>& part : {longest_first({begin, middle}), longest_first({middle, all.end()})})
    for (const Piece& piece : part)
      if (!rows.put(piece)) step.left.push_back(piece);
  step.rows = rows.take();
  return step;
}

/// `count` rows of `rows`, the fullest unless they must stay in order; the others' pieces are left.
PackedStep choose_rows(std::vector<PackedRow> rows, std::size_t count, bool in_order) {
  if (!in_order)
    std::stable_sort(rows.begin(), rows.end(),
                     [](const PackedRow& a, const PackedRow& b) { return a.tokens() > b.tokens(); });
  PackedStep step;
  for (std::size_t row = count; row < rows.size(); ++row)
    step.left.insert(step.left.end(), rows[row].pieces.begin(), rows[row].pieces.end());
  rows.resize(count);
  step.rows = std::move(rows);
  return step;
}

/// Stream order; neighbouring parts of one document become one piece again.
std::vector<Piece> rejoined(std::vector<Piece> pieces) {
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return std::pair(a.document, a.first) < std::pair(b.document, b.first);
  });
  std::vector<Piece> joined;
  for (const Piece& piece : pieces) {
    const bool continues = !joined.empty() && joined.back().document == piece.document &&
                           joined.back().first + joined.back().tokens == piece.first;
    if (continues) joined.back().tokens += piece.tokens;
    else joined.push_back(piece);
  }
  return joined;
}

}  // namespace

std::vector<std::int64_t> PackedRow::lengths() const {
  std::vector<std::int64_t> all;
  for (const Piece& piece : pieces) all.push_back(piece.tokens);
  return all;
}

std::int64_t PackedRow::tokens() const {
  return tokens_of(pieces);
}

double PackedRow::pairs() const {
  double sum = 0;
  for (const Piece& piece : pieces) sum += causal_pairs(piece.tokens);
  return sum;
}

std::vector<Piece> whole_documents(std::span<const std::int64_t> lengths, std::int64_t first) {
  std::vector<Piece> pieces;
  for (const std::int64_t length : lengths) pieces.push_back({first++, 0, length});
  return pieces;
}

std::vector<PackedRow> pack_documents(std::span<const Piece> pieces, std::int64_t row_tokens, Packer packer) {
  if (row_tokens < 1) throw std::logic_error("rows need at least one token");
  switch (packer) {
    case Packer::concatenate: return concatenate(pieces, row_tokens);
    case Packer::first_fit: return first_fit(longest_first(cut_to_rows(pieces, row_tokens)), row_tokens);
    case Packer::best_fit: return best_fit(longest_first(cut_to_rows(pieces, row_tokens)), row_tokens);
    case Packer::balanced: return balanced(longest_first(cut_to_rows(pieces, row_tokens)), row_tokens);
  }
  throw std::logic_error("unknown packer");
}

std::vector<PackedRow> pad_documents(std::span<const Piece> pieces, std::int64_t row_tokens) {
  std::vector<PackedRow> rows;
  for (const Piece& piece : cut_to_rows(pieces, row_tokens)) rows.push_back({{piece}});
  return rows;
}

PackedStep pack_step(std::span<const Piece> pieces, std::int64_t row_tokens, std::int64_t rows,
                     const DocumentSpec& documents) {
  const auto count = static_cast<std::size_t>(rows);
  PackedStep step;
  if (documents.rows == Rows::padded) step = choose_rows(pad_documents(pieces, row_tokens), count, true);
  else if (documents.packer == Packer::balanced) step = balanced_step(pieces, row_tokens, rows);
  else
    step = choose_rows(pack_documents(pieces, row_tokens, documents.packer), count,
                       documents.packer == Packer::concatenate);
  step.left = rejoined(std::move(step.left));
  return step;
}

std::vector<std::vector<PackedRow>> deal_rows(std::vector<PackedRow> rows, std::int64_t groups) {
  const auto count = static_cast<std::size_t>(groups);
  if (groups < 1 || rows.size() % count != 0) throw std::logic_error("rows are not divisible by the number of groups");
  const std::size_t size = rows.size() / count;
  std::vector<std::pair<double, std::size_t>> heaviest;  // minus pairs, row: ties keep their order
  for (std::size_t row = 0; row < rows.size(); ++row) heaviest.emplace_back(-rows[row].pairs(), row);
  std::sort(heaviest.begin(), heaviest.end());
  std::set<std::pair<double, std::size_t>> open;  // pairs, group: the lightest first
  for (std::size_t group = 0; group < count; ++group) open.insert({0.0, group});
  std::vector<std::vector<PackedRow>> dealt(count);
  for (const auto& [minus_pairs, row] : heaviest) {
    const auto [pairs, group] = *open.begin();
    open.erase(open.begin());
    dealt[group].push_back(std::move(rows[row]));
    if (dealt[group].size() < size) open.insert({pairs - minus_pairs, group});
  }
  return dealt;
}

PackingReport packing_report(std::span<const PackedRow> rows, std::int64_t row_tokens) {
  PackingReport report;
  report.rows = static_cast<std::int64_t>(rows.size());
  std::map<std::int64_t, std::int64_t> pieces_of;  // document -> pieces, and a part means that it was cut
  std::set<std::int64_t> cut;
  double tokens = 0, squares = 0, pairs = 0, most = 0;
  for (const PackedRow& row : rows) {
    for (const Piece& piece : row.pieces) {
      const auto l = static_cast<double>(piece.tokens);
      tokens += l, squares += l * l;
      ++report.pieces;
      if (++pieces_of[piece.document] > 1 || piece.first > 0) cut.insert(piece.document);
    }
    pairs += row.pairs();
    most = std::max(most, row.pairs());
  }
  report.documents = static_cast<std::int64_t>(pieces_of.size());
  report.cut_documents = static_cast<std::int64_t>(cut.size());
  if (rows.empty() || tokens == 0) return report;
  const auto count = static_cast<double>(report.rows), length = static_cast<double>(row_tokens);
  report.real_token_share = tokens / (count * length);
  report.sum_of_squares_share = squares / (count * length * length);
  report.mean_square_length = squares / tokens;
  report.imbalance = most / (pairs / count);
  return report;
}

}  // namespace reckon
