#include "plan/document_lengths.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "plan/counter_random.h"
#include "plan/document_source.h"
#include "plan/errors.h"
#include "plan/nearest_name.h"
#include "plan/parse_quantity.h"
#include "plan/read_only_file.h"
#include "plan/yaml_document.h"

namespace reckon {

namespace {

constexpr std::int64_t kLongest = std::int64_t{1} << 40;
constexpr std::uint64_t kChoiceSeed = 0x6D69786564ull;  // a stream of its own for the choice of a mixture's component

const LengthDistribution* find_distribution(std::string_view name) {
  for (const LengthDistribution& distribution : length_distributions())
    if (distribution.name == name) return &distribution;
  return nullptr;
}

/// Shares are by tokens: a document is drawn with probability share / mean length.
const std::vector<std::pair<std::string_view, double>>& mixed_shares() {
  static const std::vector<std::pair<std::string_view, double>> shares = {
      {"fineweb_edu", 0.60}, {"code", 0.20}, {"arxiv", 0.10}, {"wikipedia", 0.05}, {"books", 0.05}};
  return shares;
}

}  // namespace

const std::vector<LengthDistribution>& length_distributions() {
  static const std::vector<LengthDistribution> all = {
      {"c4", 250, 1.04, 0, "C4, English; fitted to its mean"},
      {"wikipedia", 305, 1.28, 0, "English Wikipedia; checked against its 95th percentile"},
      {"fineweb", 400, 1.05, 0, "FineWeb; fitted to its mean"},
      {"chat", 560, 0.90, 0, "supervised chat examples"},
      {"fineweb_edu", 620, 1.00, 0, "FineWeb-Edu; fitted to its mean"},
      {"dolma", 760, 1.08, 0, "Dolma's Common Crawl part; fitted to its mean"},
      {"code", 560, 1.45, 0, "source files"},
      {"biomedical", 6500, 0.65, 0, "biomedical papers; fitted to their mean"},
      {"govreport", 8639, 0.56, 0, "GovReport; checked against its 90th percentile"},
      {"agents", 8046, 0.92, 49152, "tool-use runs, cut at 48K"},
      {"arxiv", 10500, 0.75, 0, "arXiv papers; fitted to their mean"},
      {"books", 68404, 0.86, 0, "PG19 books; checked against their 90th percentile"}};
  return all;
}

double mean_length(const LengthDistribution& distribution) {
  return distribution.median * portable_exp(distribution.sigma * distribution.sigma / 2);
}

std::int64_t document_length(const LengthDistribution& distribution, std::uint64_t seed, std::uint64_t index) {
  const double z = inverse_normal(uniform_number(seed, index));
  const double length = distribution.median * portable_exp(distribution.sigma * z);
  const std::int64_t longest = distribution.clip > 0 ? distribution.clip : kLongest;
  return std::clamp(static_cast<std::int64_t>(std::floor(std::min(length, 1e12) + 0.5)), std::int64_t{1}, longest);
}

LengthSource::LengthSource(const std::string& source, std::int64_t row_tokens, std::uint64_t seed) : seed_(seed) {
  if (source == "single") {
    single_ = row_tokens;
  } else if (const LengthDistribution* distribution = find_distribution(source)) {
    mixture_ = {*distribution};
    probabilities_ = {1.0};
  } else if (source == "mixed") {
    double sum = 0;
    for (const auto& [name, share] : mixed_shares()) {
      mixture_.push_back(*find_distribution(name));
      probabilities_.push_back(share / mean_length(mixture_.back()));
      sum += probabilities_.back();
    }
    for (double& probability : probabilities_) probability /= sum;
  } else if (!path_exists(source)) {
    std::string message = fmt::format("documents.source is '{}': neither a file nor a folder, nor one of {}", source,
                                      fmt::join(known_length_sources(), ", "));
    const std::string nearest = nearest_name(source, known_length_sources());
    if (!nearest.empty()) message += fmt::format("; did you mean '{}'?", nearest);
    throw ConfigError({{std::move(message), {}, 0, 0, "documents.source"}});
  } else if (std::filesystem::path(source).extension() == ".lengths") {
    list_ = read_lengths(source);
  } else {
    list_ = open_documents(source)->lengths();
  }
}

bool names_documents(const std::string& source) {
  const std::vector<std::string> known = known_length_sources();
  return std::find(known.begin(), known.end(), source) == known.end() &&
         std::filesystem::path(source).extension() != ".lengths";
}

std::int64_t LengthSource::length(std::uint64_t index) const {
  if (single_ > 0) return single_;
  if (!list_.empty()) return list_[index % list_.size()];
  double u = mixture_.size() > 1 ? uniform_number(seed_ ^ kChoiceSeed, index) : 0;
  std::size_t i = 0;
  while (i + 1 < mixture_.size() && u >= probabilities_[i]) u -= probabilities_[i++];
  return document_length(mixture_[i], seed_, index);
}

std::vector<std::int64_t> LengthSource::lengths(std::uint64_t first, std::size_t count) const {
  std::vector<std::int64_t> drawn;
  for (std::size_t i = 0; i < count; ++i) drawn.push_back(length(first + i));
  return drawn;
}

std::vector<std::int64_t> LengthSource::lengths_holding(std::int64_t tokens, std::uint64_t first) const {
  std::vector<std::int64_t> drawn;
  for (std::int64_t held = 0; held < tokens; held += drawn.back()) drawn.push_back(length(first + drawn.size()));
  return drawn;
}

std::vector<std::string> known_length_sources() {
  std::vector<std::string> names = {"single", "mixed"};
  for (const LengthDistribution& distribution : length_distributions()) names.emplace_back(distribution.name);
  return names;
}

std::vector<std::int64_t> read_lengths(const std::filesystem::path& file) {
  const std::string text = read_text_file(file);
  std::vector<std::int64_t> lengths;
  int line_number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1, ++line_number;
    line = line.substr(0, line.find('#'));
    line.erase(line.find_last_not_of(" \t\r") + 1);
    line.erase(0, line.find_first_not_of(" \t"));
    if (line.empty()) continue;
    const auto wrong = [&](const std::string& why) {
      throw ConfigError({{why, file.string(), line_number, 1, "documents.source"}});
    };
    try {
      lengths.push_back(parse_count(line));
    } catch (const ConfigError& problem) {
      wrong(problem.diagnostics().front().message);
    }
    if (lengths.back() < 1 || lengths.back() > kLongest)
      wrong(fmt::format("a document of {} tokens; 1 to {} are needed", lengths.back(), kLongest));
  }
  if (lengths.empty()) throw ConfigError({{"holds no length", file.string(), 0, 0, "documents.source"}});
  return lengths;
}

}  // namespace reckon
