#include "cli/parse_tolerance.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "plan/errors.h"

namespace reckon {

double parse_share(const std::string& text, const std::string& whole) {
  const bool percent = text.ends_with('%');
  const char* last = text.data() + text.size() - (percent ? 1 : 0);
  double share = 0;
  const auto [end, error] = std::from_chars(text.data(), last, share);
  if (error != std::errc() || end != last || !std::isfinite(share) || share < 0)
    throw ConfigError(fmt::format("--tolerance {}: a share such as 0.1 or 10% was expected", whole));
  return percent ? share / 100 : share;
}

std::vector<Tolerance> parse_tolerances(const std::vector<std::string>& texts) {
  std::vector<Tolerance> tolerances;
  for (const std::string& text : texts) {
    for (std::size_t start = 0; start <= text.size();) {
      const std::size_t end = std::min(text.find(',', start), text.size());
      const std::string part = text.substr(start, end - start);
      const auto equals = part.find('=');
      if (equals == std::string::npos) tolerances.push_back({"", parse_share(part, text)});
      else tolerances.push_back({part.substr(0, equals), parse_share(part.substr(equals + 1), text)});
      start = end + 1;
    }
  }
  return tolerances;
}

}  // namespace reckon
