#include "plan/exchange/layer_pattern.h"

#include <cctype>
#include <string>

namespace reckon {

namespace {

constexpr std::size_t kMostLayers = 100000;

bool is_digit(char letter) {
  return std::isdigit(static_cast<unsigned char>(letter));
}

/// One "[0,1]*3" of a sum.
std::optional<std::vector<bool>> term(std::string_view text) {
  const std::size_t close = text.find(']');
  if (text.empty() || text.front() != '[' || close == std::string_view::npos) return std::nullopt;
  const std::vector<std::int64_t> entries = numbers_in(text.substr(1, close - 1));
  std::string_view rest = text.substr(close + 1);
  std::int64_t times = 1;
  if (!rest.empty()) {
    const std::vector<std::int64_t> factor = numbers_in(rest);
    if (rest.front() != '*' || factor.size() != 1) return std::nullopt;
    times = factor.front();
  }
  if (entries.empty() || entries.size() * static_cast<std::size_t>(times) > kMostLayers) return std::nullopt;
  std::vector<bool> layers;
  for (std::int64_t i = 0; i < times; ++i)
    for (const std::int64_t entry : entries) layers.push_back(entry != 0);
  return layers;
}

}  // namespace

std::vector<std::int64_t> numbers_in(std::string_view text) {
  std::vector<std::int64_t> numbers;
  for (std::size_t at = 0; at < text.size();) {
    if (!is_digit(text[at])) {
      ++at;
      continue;
    }
    std::int64_t value = 0;
    for (; at < text.size() && is_digit(text[at]); ++at) {
      value = 10 * value + (text[at] - '0');
      if (value > (std::int64_t{1} << 31)) return numbers;
    }
    numbers.push_back(value);
  }
  return numbers;
}

std::optional<std::vector<bool>> layer_pattern(std::string_view text, std::int64_t layers) {
  std::string plain;
  for (const char letter : text)
    if (!std::isspace(static_cast<unsigned char>(letter)) && letter != '(' && letter != ')') plain += letter;
  if (layers < 1 || layers > static_cast<std::int64_t>(kMostLayers)) return std::nullopt;
  std::vector<bool> pattern;
  if (plain.find('[') == std::string::npos) {
    const std::vector<std::int64_t> period = numbers_in(plain);
    if (period.size() != 1 || period.front() < 1) return std::nullopt;
    for (std::int64_t layer = 0; layer < layers; ++layer) pattern.push_back(layer % period.front() == 0);
    return pattern;
  }
  for (std::size_t at = 0; at <= plain.size();) {
    const std::size_t plus = std::min(plain.find('+', at), plain.size());
    const auto part = term(std::string_view(plain).substr(at, plus - at));
    if (!part || pattern.size() + part->size() > kMostLayers) return std::nullopt;
    pattern.insert(pattern.end(), part->begin(), part->end());
    at = plus + 1;
  }
  if (pattern.size() != static_cast<std::size_t>(layers)) return std::nullopt;
  return pattern;
}

}  // namespace reckon
