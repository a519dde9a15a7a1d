// What ranks and rank 0's server say to each other.
#pragma once

#include <string_view>

namespace reckon {

enum class FrameKind : int {
  hello,           // rank, ranks, version text
  open_group,      // key, name, world ranks
  gather,          // key, group, member, bytes
  call,            // an AnnouncedCall
  overdue_call,    // seconds in nanoseconds, an AnnouncedCall
  overdue_gather,  // seconds in nanoseconds, key, group, what it is for
  failed,          // exit code, text; in both directions
  goodbye,
  gathered,  // key, number of members, their bytes in group order
};

constexpr std::string_view kProtocol = "reckon rendezvous 1";

}  // namespace reckon
