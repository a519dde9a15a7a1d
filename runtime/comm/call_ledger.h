// Who has made which call: ranks that cannot see each other's calls (NCCL compares nothing) tell rank 0, which finds
// calls that differ and says who is missing when one does not end.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/comm/operation.h"

namespace reckon {

struct AnnouncedCall {
  std::string group;        // its key, see CallLedger::open
  int member = 0;           // the caller's rank in the group
  std::int64_t number = 0;  // collectives: of this member in this group; messages: of this pair and direction; from 1
  Operation operation;      // sizes and tables; its addresses mean nothing here
};

std::string to_bytes(const AnnouncedCall& call);
AnnouncedCall announced_call(std::string_view bytes);

class CallLedger {
 public:
  /// A group by its key, with its name in messages and its members' ranks in the world. Again by other members:
  /// ignored.
  void open(const std::string& key, const std::string& name, std::vector<int> world_ranks);

  /// What differs between this call and the same call of other members; empty where all agree so far.
  std::optional<std::string> add(const AnnouncedCall& call);

  /// Why `call` may not have ended within `seconds`: who has not made it.
  std::string overdue(const AnnouncedCall& call, double seconds) const;

  const std::vector<int>& world_ranks(const std::string& key) const { return groups_.at(key).world_ranks; }
  const std::string& name(const std::string& key) const { return groups_.at(key).name; }
  bool has(const std::string& key) const { return groups_.contains(key); }
  /// Calls that some member has made and others have not: what the ledger holds in memory.
  std::size_t open_calls() const;

 private:
  using Pair = std::pair<int, int>;  // sender, receiver
  struct Group {
    std::string name;
    std::vector<int> world_ranks;
    std::vector<std::int64_t> made;  // collectives, by member
    std::map<std::int64_t, std::vector<AnnouncedCall>> collectives;
    std::map<Pair, std::map<std::int64_t, AnnouncedCall>> messages;  // one side only
  };

  std::optional<std::string> add_collective(Group& group, const AnnouncedCall& call);
  std::optional<std::string> add_message(Group& group, const AnnouncedCall& call);

  std::map<std::string, Group> groups_;
};

}  // namespace reckon
