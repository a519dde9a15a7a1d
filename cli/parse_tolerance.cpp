#include "cli/parse_tolerance.h"

#include <fmt/format.h>

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

}  // namespace reckon
