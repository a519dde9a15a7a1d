// Keys that a search leaves as the plan has them (`reckon search --fix KEY`).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cost_model/search_space.h"

namespace reckon {

class FixedKeys {
 public:
  /// Throws ConfigError for a key that a search does not vary.
  FixedKeys(const Plan& base, const std::vector<std::string>& keys);

  /// Whether the candidate has the plan's value of every fixed key.
  bool allow(const Candidate& candidate) const;

 private:
  const Plan& base_;
  std::vector<std::size_t> fixed_;  // places in the list of keys
};

}  // namespace reckon
