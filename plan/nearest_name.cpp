#include "plan/nearest_name.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace reckon {

namespace {

std::string folded(std::string_view name) {
  std::string out;
  for (const char c : name.substr(0, 64)) {
    out += c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

/// Optimal string alignment distance, three rows at a time.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before, previous(b.size() + 1), current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], before[j - 2] + 1);
      }
    }
    before = std::exchange(previous, current);
  }
  return previous[b.size()];
}

}  // namespace

std::string nearest_name(std::string_view wrong, const std::vector<std::string>& known) {
  const std::string from = folded(wrong);
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, from.size() / 3) + 1;
  for (const std::string& name : known) {
    const std::string to = folded(name);
    const std::size_t distance = edit_distance(from, to);
    if (distance < best_distance && distance < to.size()) best = name, best_distance = distance;
  }
  return best;
}

}  // namespace reckon
