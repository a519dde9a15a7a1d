// Values as bytes of a message between ranks: numbers of 64 bits, texts and tables with their length.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "plan/errors.h"

namespace reckon {

class WireWriter {
 public:
  WireWriter& number(std::int64_t value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  WireWriter& text(std::string_view value) {
    number(static_cast<std::int64_t>(value.size()));
    bytes_.append(value);
    return *this;
  }
  WireWriter& numbers(const std::vector<std::int64_t>& values) {
    number(static_cast<std::int64_t>(values.size()));
    for (const std::int64_t value : values) number(value);
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Throws RunError where the bytes end too early: the other side speaks another version, or something else.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : bytes_(bytes) {}

  std::int64_t number() {
    std::int64_t value = 0;
    std::memcpy(&value, next(sizeof(value)).data(), sizeof(value));
    return value;
  }
  std::string text() { return std::string(next(length(1))); }
  std::vector<std::int64_t> numbers() {
    std::vector<std::int64_t> values(length(sizeof(std::int64_t)));
    for (std::int64_t& value : values) value = number();
    return values;
  }

 private:
  std::size_t length(std::size_t width) {
    const std::int64_t count = number();
    if (count < 0 || static_cast<std::uint64_t>(count) > bytes_.size() / width)
      throw RunError("a message between ranks is malformed; do all run the same version of reckon?");
    return static_cast<std::size_t>(count);
  }
  std::string_view next(std::size_t count) {
    if (count > bytes_.size())
      throw RunError("a message between ranks is cut off; do all run the same version of reckon?");
    const std::string_view part = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return part;
  }

  std::string_view bytes_;
};

}  // namespace reckon
