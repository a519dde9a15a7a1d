// Works block by block through an accumulator that stays in the first-level cache; the inner loops vectorise.
#include "runtime/comm/reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "plan/errors.h"
#include "runtime/comm/reduce_core.h"

namespace reckon {
namespace {

constexpr std::int64_t kBlock = 2048;  // elements of the accumulator: 8 KiB in FP32

template <class Format, class Combine>
void reduce(std::span<const void* const> sources, std::int64_t count, void* result, Combine combine) {
  using Stored = typename Format::Stored;
  std::array<typename Format::Accumulated, kBlock> sums;
  for (std::int64_t start = 0; start < count; start += kBlock) {
    const std::int64_t length = std::min(kBlock, count - start);
    const Stored* first = static_cast<const Stored*>(sources[0]) + start;
    for (std::int64_t i = 0; i < length; ++i) sums[static_cast<std::size_t>(i)] = Format::load(first[i]);
    for (const void* source : sources.subspan(1)) {
      const Stored* next = static_cast<const Stored*>(source) + start;
      for (std::int64_t i = 0; i < length; ++i) {
        auto& sum = sums[static_cast<std::size_t>(i)];
        sum = combine(sum, Format::load(next[i]));
      }
    }
    Stored* out = static_cast<Stored*>(result) + start;
    for (std::int64_t i = 0; i < length; ++i) out[i] = Format::store(sums[static_cast<std::size_t>(i)]);
  }
}

}  // namespace

reduction::SourceTable reduction::source_table(std::span<const void* const> sources) {
  if (sources.size() > static_cast<std::size_t>(SourceTable::kMost))
    throw ConfigError(fmt::format("{} ranks share a device; the sums of at most {} are added there", sources.size(),
                                  SourceTable::kMost));
  SourceTable table;
  for (const void* source : sources) table.at[table.ranks++] = static_cast<const std::byte*>(source);
  return table;
}

bool can_reduce(ElementType type) {
  return type != ElementType::uint8;
}

void reduce_in_rank_order(std::span<const void* const> sources, ElementType type, Reduction reduction,
                          std::int64_t count, void* result) {
  const bool reduced = reduction::with_reduction(
      type, reduction, [&](auto format, auto combine) { reduce<decltype(format)>(sources, count, result, combine); });
  if (!reduced) throw std::logic_error("raw bytes cannot be reduced");
}

}  // namespace reckon
