// Lengths of the documents that a plan trains on: `documents.source`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// Log-normal lengths in tokens, with a largest one. Sources of the figures: docs/packing.md.
struct LengthDistribution {
  std::string_view name;
  double median = 0;       // tokens
  double sigma = 0;        // of the logarithm
  std::int64_t clip = 0;   // longest document, 0 = none
  std::string_view basis;  // what it stands for
};

/// fineweb, wikipedia, arxiv ... in the order of their mean.
const std::vector<LengthDistribution>& length_distributions();

/// Mean of the unclipped distribution: median * exp(sigma^2 / 2).
double mean_length(const LengthDistribution& distribution);

/// Length of document `index`, at least 1: the same for a seed on every machine.
std::int64_t document_length(const LengthDistribution& distribution, std::uint64_t seed, std::uint64_t index);

/// Where a plan's lengths come from: "single" (every document fills a row), a distribution's name, "mixed" (60 %
/// fineweb_edu, 20 % code, 10 % arxiv, 5 % wikipedia, 5 % books by tokens), a file of lengths (ending .lengths, one a
/// line), or documents of tokens or text (document_source.h).
class LengthSource {
 public:
  /// Throws ConfigError for a name that is no distribution and no file, with the nearest known name.
  LengthSource(const std::string& source, std::int64_t row_tokens, std::uint64_t seed);

  /// Lengths of documents first, first + 1, ... A list from a file starts again at its end.
  std::vector<std::int64_t> lengths(std::uint64_t first, std::size_t count) const;
  /// As many documents, from `first` on, as hold at least `tokens` tokens.
  std::vector<std::int64_t> lengths_holding(std::int64_t tokens, std::uint64_t first = 0) const;

 private:
  std::int64_t length(std::uint64_t index) const;

  std::uint64_t seed_ = 0;
  std::int64_t single_ = 0;                  // every document has this length; 0 = not
  std::vector<std::int64_t> list_;           // from a file
  std::vector<LengthDistribution> mixture_;  // drawn from with these probabilities, which sum to 1
  std::vector<double> probabilities_;
};

/// Names a plan may give as documents.source, without files.
std::vector<std::string> known_length_sources();

/// Whether `source` is a file or folder of documents, not a distribution, a list of lengths or "single".
bool names_documents(const std::string& source);

/// Whole numbers above 0, one a line; blank lines and what follows '#' are skipped. Throws ConfigError with file and
/// line.
std::vector<std::int64_t> read_lengths(const std::filesystem::path& file);

}  // namespace reckon
