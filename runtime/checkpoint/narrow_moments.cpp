#include "runtime/checkpoint/narrow_moments.h"

namespace reckon {

std::string_view code_type(std::string_view state) {
  if (state == "first_moment") return "I8";
  if (state == "second_moment") return "U8";
  return {};
}

std::string code_state(std::string_view state) {
  return std::string(state) + "_code";
}

std::string scale_state(std::string_view state) {
  return std::string(state) + "_scale";
}

void decode_moments(std::string_view state, std::span<const float> codes, std::span<const float> scales,
                    std::span<float> values) {
  const bool is_root = code_type(state) == "U8";
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float value = codes[i] * scales[i];
    values[i] = is_root ? value * value : value;
  }
}

}  // namespace reckon
