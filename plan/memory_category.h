// What a block of device memory is for. Predicted, simulated and measured memory are split by the same categories.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace reckon {

enum class MemoryCategory : std::uint8_t { parameters, gradients, optimizer, activations, transient, communication };
inline constexpr std::size_t kMemoryCategories = 6;
std::string_view name_of(MemoryCategory category);

using BytesByCategory = std::array<std::int64_t, kMemoryCategories>;

}  // namespace reckon
