#include "runtime/train/narrow_moment_blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace reckon {
namespace {

/// The number that codes stand for: the first moment itself, the root of the second.
float coded(float value, std::int8_t) {
  return value;
}
float coded(float value, std::uint8_t) {
  return std::sqrt(value);
}

template <class Code>
constexpr float kLargest = static_cast<float>(std::numeric_limits<Code>::max());

/// `code` under `scale` as a code under `other`, which is not smaller.
template <class Code>
Code rescaled(float code, float scale, float other) {
  const float rounded = std::nearbyint(code * (scale / other));
  const float least = std::numeric_limits<Code>::is_signed ? -kLargest<Code> : code > 0 ? 1.0f : 0.0f;
  return static_cast<Code>(std::clamp(rounded, least, kLargest<Code>));
}

/// FP32 values of one block, as codes under a scale of their own.
template <class Code>
float encode(std::span<const float> values, std::vector<float>& codes) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::fabs(coded(value, Code{})));
  const float scale = largest / kLargest<Code>;
  codes.clear();
  for (const float value : values) {
    const float number = coded(value, Code{});
    const float code = scale > 0 ? std::nearbyint(number / scale) : 0.0f;
    codes.push_back(
        std::min(!std::numeric_limits<Code>::is_signed && number > 0 ? std::max(code, 1.0f) : code, kLargest<Code>));
  }
  return scale;
}

/// Adds elements under one scale to a block, of which others may be there already.
template <class Code>
void merge(std::span<Code> block, float& scale, std::int64_t first, std::span<const float> codes, float code_scale) {
  const float common = std::max(scale, code_scale);
  if (common != scale && scale > 0)
    for (Code& code : block) code = rescaled<Code>(static_cast<float>(code), scale, common);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    Code& code = block[static_cast<std::size_t>(first) + i];
    code = common == code_scale ? static_cast<Code>(codes[i]) : rescaled<Code>(codes[i], code_scale, common);
  }
  scale = common;
}

template <class Code>
void put(const MomentBlocks<Code>& blocks, std::int64_t first, const ReadMoments& moments) {
  const auto count = static_cast<std::int64_t>(moments.values.size());
  std::vector<float> encoded;
  for (std::int64_t at = 0; at < count;) {
    const std::int64_t index = (first + at) / blocks.block, start = index * blocks.block;
    const std::int64_t end = std::min(count, start + blocks.block - first);
    const float own = moments.scales[static_cast<std::size_t>(at)];
    std::int64_t stop = at + 1;  // elements of this block with the same scale
    while (stop < end && moments.scales[static_cast<std::size_t>(stop)] == own) ++stop;
    const auto part = [&](std::span<const float> all) {
      return all.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(stop - at));
    };
    const auto width = std::min(blocks.block, static_cast<std::int64_t>(blocks.codes.size()) - start);
    const std::span<Code> block =
        blocks.codes.subspan(static_cast<std::size_t>(start), static_cast<std::size_t>(width));
    float& scale = blocks.scales[static_cast<std::size_t>(index)];
    if (own > 0) {
      merge<Code>(block, scale, first + at - start, part(moments.codes), own);
    } else {
      const float given = encode<Code>(part(moments.values), encoded);
      merge<Code>(block, scale, first + at - start, encoded, given);
    }
    at = stop;
  }
}

}  // namespace

void put_moments(const MomentBlocks<std::int8_t>& blocks, std::int64_t first, const ReadMoments& moments) {
  put(blocks, first, moments);
}

void put_moments(const MomentBlocks<std::uint8_t>& blocks, std::int64_t first, const ReadMoments& moments) {
  put(blocks, first, moments);
}

}  // namespace reckon
