// Sizes of the runtime's attention on CPUs (docs/context_parallelism.md): it works on blocks of scores, in a scratch
// that depends on the head size only.
#pragma once

#include <cstdint>

namespace reckon {

constexpr std::int64_t kAttentionQueries = 64, kAttentionKeys = 512;

/// Where things lie in the scratch, in elements.
struct AttentionPlaces {
  std::int64_t scores = 0, products, part, statistics, query, key, value, end;

  explicit constexpr AttentionPlaces(std::int64_t head_dim)
      : products(kAttentionQueries * kAttentionKeys),
        part(2 * products),
        statistics(part + kAttentionQueries * head_dim),
        query(statistics + 3 * kAttentionQueries),
        key(query + kAttentionQueries * head_dim),
        value(key + kAttentionKeys * head_dim),
        end(value + kAttentionKeys * head_dim) {}
};

/// With `widens`, copies of queries, keys and values in the precision of sums are made there, too.
constexpr std::int64_t attention_scratch_elements(std::int64_t head_dim, bool widens) {
  const AttentionPlaces places(head_dim);
  return widens ? places.end : places.query;
}

}  // namespace reckon
