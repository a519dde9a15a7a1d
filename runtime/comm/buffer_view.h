// What a collective works on: an address, a number of elements and their type. Views own nothing; the memory must stay
// valid and (for sends) unchanged until the call's handle has been waited for.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace reckon {

enum class ElementType { fp64, fp32, bf16, int64, int32, uint8 };

constexpr std::int64_t bytes_of(ElementType type) {
  switch (type) {
    case ElementType::fp64:
    case ElementType::int64: return 8;
    case ElementType::fp32:
    case ElementType::int32: return 4;
    case ElementType::bf16: return 2;
    case ElementType::uint8: return 1;
  }
  return 0;
}

/// "fp32", "bf16", ...: the dtype of traffic entries.
constexpr std::string_view name_of(ElementType type) {
  switch (type) {
    case ElementType::fp64: return "fp64";
    case ElementType::fp32: return "fp32";
    case ElementType::bf16: return "bf16";
    case ElementType::int64: return "int64";
    case ElementType::int32: return "int32";
    case ElementType::uint8: return "uint8";
  }
  return "";
}

struct ConstBufferView {
  const void* address = nullptr;
  std::int64_t count = 0;  // elements
  ElementType type = ElementType::uint8;

  std::int64_t bytes() const { return count * bytes_of(type); }
};

struct BufferView {
  void* address = nullptr;
  std::int64_t count = 0;  // elements
  ElementType type = ElementType::uint8;

  std::int64_t bytes() const { return count * bytes_of(type); }
  operator ConstBufferView() const { return {address, count, type}; }
};

template <class Number>
struct ElementTypeOf;
template <>
struct ElementTypeOf<double> : std::integral_constant<ElementType, ElementType::fp64> {};
template <>
struct ElementTypeOf<float> : std::integral_constant<ElementType, ElementType::fp32> {};
template <>
struct ElementTypeOf<std::int64_t> : std::integral_constant<ElementType, ElementType::int64> {};
template <>
struct ElementTypeOf<std::int32_t> : std::integral_constant<ElementType, ElementType::int32> {};
template <>
struct ElementTypeOf<std::uint8_t> : std::integral_constant<ElementType, ElementType::uint8> {};

/// Views of a contiguous container of double, float, int64, int32 or uint8 (bf16 has no C++ type here: write the view).
template <class Container>
BufferView view(Container& container) {
  std::span span(container);
  return {span.data(), static_cast<std::int64_t>(span.size()),
          ElementTypeOf<typename decltype(span)::value_type>::value};
}
template <class Container>
ConstBufferView view(const Container& container) {
  std::span span(container);
  return {span.data(), static_cast<std::int64_t>(span.size()),
          ElementTypeOf<typename decltype(span)::value_type>::value};
}

}  // namespace reckon
