// Whole numbers as little-endian bytes, whatever the machine's own order.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <type_traits>

namespace reckon {

template <std::integral Number>
Number read_little_endian(const char* bytes) {
  std::make_unsigned_t<Number> value = 0;
  for (std::size_t i = sizeof(Number); i-- > 0;)
    value = static_cast<std::make_unsigned_t<Number>>(value << 7 << 1 | static_cast<unsigned char>(bytes[i]));
  return static_cast<Number>(value);
}

template <std::integral Number>
void append_little_endian(std::string& bytes, Number number) {
  auto value = static_cast<std::make_unsigned_t<Number>>(number);
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    bytes += static_cast<char>(value & 0xFF);
    value = static_cast<std::make_unsigned_t<Number>>(value >> 7 >> 1);
  }
}

}  // namespace reckon
