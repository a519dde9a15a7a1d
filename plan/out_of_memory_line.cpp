#include "plan/out_of_memory_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string>
#include <vector>

#include "plan/errors.h"
#include "plan/parse_quantity.h"

namespace reckon {

namespace {

constexpr std::size_t kLongest = 1 << 20;  // of a text that is searched

/// A size inside a text, with what stands around it.
struct Found {
  Bytes bytes, tolerance;
  std::size_t begin = 0, end = 0;
};

bool is_digit(char letter) {
  return std::isdigit(static_cast<unsigned char>(letter));
}
bool is_letter(char letter) {
  return std::isalpha(static_cast<unsigned char>(letter));
}

/// The size that starts at `at`, if one does.
std::optional<Found> size_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() &&
         (is_digit(text[end]) || (text[end] == '.' && end + 1 < text.size() && is_digit(text[end + 1]))))
    ++end;
  const std::string_view number = text.substr(at, end - at);
  std::size_t unit = end;
  if (unit < text.size() && text[unit] == ' ') ++unit;
  std::size_t stop = unit;
  while (stop < text.size() && is_letter(text[stop])) ++stop;
  const std::string_view written = text.substr(unit, stop - unit);
  const std::string_view name = written == "bytes" || written == "byte" ? "B" : written;
  if (name.empty() || name.back() != 'B') return std::nullopt;
  try {
    Found found{parse_bytes(fmt::format("{} {}", number, name)), Bytes(0), at, stop};
    const std::size_t point = number.find('.');
    const double digits = point == std::string_view::npos ? 0 : static_cast<double>(number.size() - point - 1);
    const double one = static_cast<double>(parse_bytes(fmt::format("1000000000 {}", name)).value) / 1e9;
    if (name != "B") found.tolerance = Bytes(static_cast<std::int64_t>(std::ceil(0.5 * one * std::pow(10, -digits))));
    return found;
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

std::vector<Found> sizes_in(std::string_view text) {
  std::vector<Found> found;
  for (std::size_t at = 0; at < text.size();) {
    const bool starts =
        is_digit(text[at]) && (at == 0 || !(is_digit(text[at - 1]) || is_letter(text[at - 1]) || text[at - 1] == '.'));
    const auto size = starts ? size_at(text, at) : std::nullopt;
    at = size ? size->end : at + 1;
    if (size) found.push_back(*size);
  }
  return found;
}

std::string lower(std::string_view text) {
  std::string copy(text.substr(0, kLongest));
  std::transform(copy.begin(), copy.end(), copy.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return copy;
}

}  // namespace

OutOfMemoryLine read_out_of_memory_line(std::string_view text) {
  text = text.substr(0, kLongest);
  const std::vector<Found> sizes = sizes_in(text);
  if (sizes.empty())
    throw ConfigError(
        fmt::format("there is no size with its unit in '{}'; write for example 512.00 MiB", text.substr(0, 80)));
  const std::string plain = lower(text);
  const std::string_view words = plain;
  OutOfMemoryLine line;
  const Found* asked = nullptr;
  std::optional<Bytes> reserved;
  for (const Found& size : sizes) {
    const auto before = [&](std::string_view phrase) { return words.substr(0, size.begin).ends_with(phrase); };
    const auto after = [&](std::string_view phrase) { return words.substr(size.end).starts_with(phrase); };
    if (before("allocate ") || before("asks for ") || before("requested ")) asked = asked == nullptr ? &size : asked;
    else if (before("capacity of ") || after(" total capacity")) line.capacity = size.bytes;
    else if (after(" is free") || after(" free")) line.free = size.bytes;
    else if (after(" is reserved by pytorch but unallocated") || after(" cached")) line.cached = size.bytes;
    else if (after(" reserved in total")) reserved = size.bytes;
    else if (after(" is allocated by pytorch") || after(" already allocated")) line.allocated = size.bytes;
  }
  if (asked == nullptr) asked = &sizes.front();
  line.asked = asked->bytes;
  line.tolerance = asked->tolerance;
  if (reserved && line.allocated && !line.cached) line.cached = *reserved - *line.allocated;
  return line;
}

}  // namespace reckon
