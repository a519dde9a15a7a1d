// Puts moments that were read from a checkpoint into blocks of 8-bit codes.
#pragma once

#include <cstdint>
#include <span>

namespace reckon {

/// Moments as a checkpoint has them, element by element: codes under scales, or, where the scale is 0, FP32 values.
struct ReadMoments {
  std::span<const float> values, codes, scales;
};

/// Blocks of one run: codes of the first moment (-127 to 127), or of the root of the second (0 to 255).
template <class Code>
struct MomentBlocks {
  std::span<Code> codes;    // of the run
  std::span<float> scales;  // of its blocks
  std::int64_t block = 1;   // elements
};

/// Writes `moments` from element `first` of the run on. Blocks whose elements all come with one scale get these codes
/// and this scale to the bit; others get the largest scale of their parts, and codes rounded to it to nearest (a root
/// above 0 to no less than 1). The blocks must be zeros before their first elements are written.
void put_moments(const MomentBlocks<std::int8_t>& blocks, std::int64_t first, const ReadMoments& moments);
void put_moments(const MomentBlocks<std::uint8_t>& blocks, std::int64_t first, const ReadMoments& moments);

}  // namespace reckon
