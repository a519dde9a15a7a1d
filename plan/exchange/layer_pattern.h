// "([0]*1+[1]*26)", "[0,1]*2" or a period: which layers have experts, as Megatron-LM writes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace reckon {

/// One entry for each layer. A number n alone: the first of every n layers. Nothing when the text is neither, or has
/// another number of entries.
std::optional<std::vector<bool>> layer_pattern(std::string_view text, std::int64_t layers);

/// The unsigned whole numbers in a text, in order; what does not fit 31 bits ends the list.
std::vector<std::int64_t> numbers_in(std::string_view text);

}  // namespace reckon
