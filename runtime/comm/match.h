// Compares a rank's call with what a peer announced, and says where parts of buffers lie; shared by the backends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/comm/operation.h"

namespace reckon {

/// A call as its maker announces it to its peers.
struct Announcement {
  OperationKind kind;
  Reduction reduction;
  ElementType type;
  std::int32_t peer;
  std::int64_t count;    // described_count()
  std::int64_t issued;   // nanoseconds on the host's monotonic clock
  std::uint64_t source;  // address of the send buffer
  std::uint64_t result;  // address of the receive buffer
  bool payload_inside;   // the send buffer travels with the announcement
  bool has_counts;       // part sizes come with the announcement
};

Announcement announcement_of(const Operation& operation, std::int64_t issued, bool payload_inside);

bool has_counts(const Operation& operation);
/// The table that is announced: of the send buffer where there is one, else of the receive buffer.
const std::vector<std::int64_t>& announced_counts(const Operation& operation);

/// What is wrong between rank `rank`'s call and `member`'s: empty text = they differ in kind, type or size; other text
/// tells more. `counts` is the member's table, if it has one.
std::optional<std::string> difference(const Operation& own, int rank, const Announcement& other,
                                      const std::int64_t* counts, int member);

/// "call 3 of group tensor differs: rank 0 called ..., rank 1 called ..." with ranks of the world.
std::string mismatch_text(const std::string& heading, const Operation& own, int world_rank, const Announcement& other,
                          int other_world_rank, const std::string& detail);

/// Where in `from`'s send buffer the data for `to` lies; `counts` is `from`'s table, if it has one. `own` is this
/// rank's side of the call, alike in kind and size.
Segment part_between(const Operation& own, const std::int64_t* counts, int from, int to, int size);
/// Where `from`'s data goes in this rank's receive buffer.
Segment place_of(const Operation& own, int from, int size);

}  // namespace reckon
