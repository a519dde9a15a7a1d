// The value of a shell's `$((...))`: whole numbers, + - * / %, brackets.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace reckon {

/// Nothing when it is no such expression, divides by zero, or leaves 53 bits. `variable` gives the text of a name.
std::optional<std::int64_t> shell_arithmetic(
    std::string_view text, const std::function<std::optional<std::string>(std::string_view)>& variable);

}  // namespace reckon
