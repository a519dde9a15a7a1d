// Which runs of attention tasks are documents that lie one after the other: what variable-length kernels take.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plan/ring_transfers.h"

namespace reckon {

struct FlashBorders {
  std::vector<std::int32_t> starts;  // of the documents, and the end of the last
  std::int64_t longest = 0;
};

/// Nothing unless the tasks cover tokens 0 ... tokens - 1 in order, each a document's queries against its own keys with
/// a causal mask.
inline std::optional<FlashBorders> flash_borders(std::span<const AttentionTask> tasks, std::int64_t tokens) {
  FlashBorders borders{{0}, 0};
  for (const AttentionTask& task : tasks) {
    if (task.query != borders.starts.back() || task.key != task.query || task.keys != task.queries || task.shift != 0)
      return std::nullopt;
    borders.starts.push_back(static_cast<std::int32_t>(task.query + task.queries));
    borders.longest = task.queries > borders.longest ? task.queries : borders.longest;
  }
  if (borders.starts.back() != tokens) return std::nullopt;
  return borders;
}

}  // namespace reckon
