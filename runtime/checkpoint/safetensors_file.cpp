#include "runtime/checkpoint/safetensors_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "plan/errors.h"
#include "plan/little_endian.h"

namespace reckon {
namespace {

constexpr std::size_t kChunk = 1 << 18;  // elements converted at a time

float from_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  float value = std::ldexp(static_cast<float>(exponent == 0 ? fraction : fraction + 1024), std::max(exponent, 1) - 25);
  if (exponent == 31)
    value = fraction == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  return bits >> 15 ? -value : value;
}

template <std::unsigned_integral Bits, class Convert>
void convert(const std::vector<char>& bytes, std::span<float> into, Convert to_float) {
  for (std::size_t i = 0; i < into.size(); ++i)
    into[i] = to_float(read_little_endian<Bits>(bytes.data() + i * sizeof(Bits)));
}

void convert(const std::vector<char>& bytes, std::string_view type, std::span<float> into) {
  if (type == "F32") convert<std::uint32_t>(bytes, into, [](std::uint32_t bits) { return std::bit_cast<float>(bits); });
  else if (type == "BF16")
    convert<std::uint16_t>(bytes, into, [](std::uint32_t bits) { return std::bit_cast<float>(bits << 16); });
  else if (type == "F16") convert<std::uint16_t>(bytes, into, from_half);
  else if (type == "U8") convert<std::uint8_t>(bytes, into, [](std::uint8_t code) { return static_cast<float>(code); });
  else if (type == "I8")
    convert<std::uint8_t>(bytes, into,
                          [](std::uint8_t bits) { return static_cast<float>(std::bit_cast<std::int8_t>(bits)); });
  else
    convert<std::uint64_t>(bytes, into,
                           [](std::uint64_t bits) { return static_cast<float>(std::bit_cast<double>(bits)); });
}

}  // namespace

bool is_floating_type(std::string_view type) {
  return type == "F64" || type == "F32" || type == "F16" || type == "BF16";
}

void SafetensorsFile::read(const StoredTensor& tensor, std::int64_t first, std::span<float> into) const {
  if (!is_floating_type(tensor.type) && tensor.type != "I8" && tensor.type != "U8")
    throw ConfigError(
        {{fmt::format("tensor {} is of type {}; weights are F64, F32, F16 or BF16", tensor.name, tensor.type),
          file_.name(),
          0,
          0,
          {}}});
  const auto width = static_cast<std::size_t>(type_bytes(tensor.type));
  std::vector<char> bytes;
  std::int64_t at = tensor.begin + first * static_cast<std::int64_t>(width);
  while (!into.empty()) {
    const std::span<float> part = into.first(std::min(into.size(), kChunk));
    bytes.resize(part.size() * width);
    file_.read(at, bytes);
    convert(bytes, tensor.type, part);
    at += static_cast<std::int64_t>(bytes.size());
    into = into.subspan(part.size());
  }
}

}  // namespace reckon
