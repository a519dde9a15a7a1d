// The attention of one row as one ring rank carries it out: which keys and values arrive from whom in which round, and
// what is computed against them. Forward and backward follow the same rounds.
//
// Round k brings keys and values of the rank k places before. `direct`: the owner sends exactly the tokens that are
// needed, straight to the rank that needs them. `ring`: every rank passes whole blocks to the next one, for as many
// rounds as the farthest need asks for. Rounds without any transfer or work are left out.
//
// Backward: the keys and values come again. In both modes the gradients of the tokens that a round's tasks can see go
// straight back to their owner, so that no gradient waits for another rank's work.
//
// A rank has room for three blocks beside its own (one arrives while one is in use and one is being sent), in backward
// for three of gradients as well: a fixed buffer, whatever the documents.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/token_placement.h"

namespace reckon {

enum class TransferMode { ring, direct };

/// Consecutive tokens among those of one rank.
struct LocalRange {
  std::int64_t first = 0, count = 0;

  bool operator==(const LocalRange&) const = default;
};

/// Queries query ... query + queries - 1 of the rank against keys key ... key + keys - 1 of a block; query j of the
/// task sees its keys i <= j + shift. Every query sees at least one key. shift >= keys - 1: all see all.
struct AttentionTask {
  std::int64_t query = 0, queries = 0, key = 0, keys = 0, shift = 0;

  bool sees_all() const { return shift >= keys - 1; }
  double pairs() const;
  bool operator==(const AttentionTask&) const = default;
};

struct RingRound {
  std::int64_t distance = 0;         // owner of the block: (rank - distance) mod ring
  std::int64_t from = -1, to = -1;   // ranks that send to and receive from this one in this round; -1 = none
  std::vector<LocalRange> receive;   // which of the block owner's tokens arrive, in this order
  std::vector<LocalRange> send;      // direct: own tokens for `to`. ring: all of the block of round distance - 1
  std::vector<AttentionTask> tasks;  // keys are numbered as they arrive
  std::vector<LocalRange> needed;    // which of the block owner's tokens the tasks can see; direct: all that arrive
  std::vector<LocalRange> lent;      // which of the own tokens rank + distance needs in this round

  std::int64_t received() const;  // tokens
  std::int64_t sent() const;
  std::int64_t gradients_sent() const;      // tokens whose gradients go to the block's owner
  std::int64_t gradients_received() const;  // tokens whose gradients come from rank + distance
};

/// What one rank sends for a row: tokens whose keys and values leave it in forward (as many again in backward), and
/// tokens whose gradients it returns to their owners.
struct RingSends {
  std::int64_t tokens = 0, messages = 0;
  std::int64_t gradient_tokens = 0, gradient_messages = 0;

  bool operator==(const RingSends&) const = default;
};

struct RingTransfers {
  TransferMode mode = TransferMode::direct;
  std::int64_t rank = 0, ring = 1, rank_tokens = 0;
  std::vector<AttentionTask> own;  // against the rank's own keys
  std::vector<RingRound> rounds;   // by distance

  double pairs() const;
  std::int64_t received() const;  // tokens whose keys and values arrive in forward
  RingSends sends() const;
  std::int64_t owner(const RingRound& round) const { return (rank - round.distance + ring) % ring; }
  std::int64_t borrower(const RingRound& round) const { return (rank + round.distance) % ring; }
};

RingTransfers ring_transfers(const DocumentBorders& documents, const TokenPlacement& placement, std::int64_t rank,
                             TransferMode mode);

/// The sends of all ranks' transfers, without making these.
std::vector<RingSends> ring_sends(const DocumentBorders& documents, const TokenPlacement& placement, TransferMode mode);

/// Direct when its busiest rank moves less than 0.9 times what the ring would; otherwise the ring, whose neighbours are
/// the cheaper links.
TransferMode choose_transfer_mode(const DocumentBorders& documents, const TokenPlacement& placement);

/// Rounds that the ring needs: the largest distance between a rank and an owner of keys that it sees.
std::int64_t ring_rounds(const DocumentBorders& documents, const TokenPlacement& placement);

/// Tokens of the buffers for keys and values (and in backward of those for their gradients): three blocks.
constexpr std::int64_t ring_buffer_tokens(std::int64_t rank_tokens) {
  return 3 * rank_tokens;
}

}  // namespace reckon
