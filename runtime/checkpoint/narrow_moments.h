// Moments in 8 bits in a checkpoint: "first_moment/NAME" as I8 codes, "second_moment/NAME" as U8 codes of its root, and
// beside each "STATE_scale/NAME" with the FP32 scales of the blocks that the part touches. A block may begin before the
// part and end after it. Read as numbers they are code * scale, and its square.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace reckon {

/// Where blocks lie in a part: `phase` elements of the first one come before the part. block = 0: no blocks, FP32.
struct BlockPlace {
  std::int64_t block = 0, phase = 0;

  /// Index of the block of element `i`, and how many blocks `count` elements touch.
  std::int64_t block_of(std::int64_t i) const { return (phase + i) / block; }
  std::int64_t blocks(std::int64_t count) const { return count == 0 ? 0 : block_of(count - 1) + 1; }

  bool operator==(const BlockPlace&) const = default;
};

/// Type of a state's codes: "I8" or "U8"; empty for a state that is never stored in 8 bits.
std::string_view code_type(std::string_view state);

/// The states that narrow moments add to "first_moment": what their codes and scales are called when they are read.
std::string code_state(std::string_view state);
std::string scale_state(std::string_view state);

/// values = code * scale, for "second_moment" its square.
void decode_moments(std::string_view state, std::span<const float> codes, std::span<const float> scales,
                    std::span<float> values);

}  // namespace reckon
