// Documents of tokens, wherever they are stored: the one interface that packing, training and `tokenize` read from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace reckon {

/// Reads are bounded and checked; what is wrong with the data is a ConfigError naming the file. Several threads may
/// read at once.
class DocumentSource {
 public:
  virtual ~DocumentSource() = default;

  /// Every token is at least 0 and below this.
  virtual std::int64_t vocabulary() const = 0;
  virtual std::int64_t documents() const = 0;
  /// Tokens of a document, at least 1.
  virtual std::int64_t length(std::int64_t document) const = 0;
  /// Fills `into` with the document's tokens from token `first` on; all of them must exist.
  virtual void read(std::int64_t document, std::int64_t first, std::span<std::int32_t> into) const = 0;

  std::vector<std::int32_t> read_all(std::int64_t document) const;
  std::vector<std::int64_t> lengths() const;
};

/// A token file of this project, a Megatron .bin or .idx (the other must lie beside it), a .jsonl file, a text file, or
/// a folder of text. Text is read by bytes (byte_tokens.h). Throws ConfigError.
std::unique_ptr<DocumentSource> open_documents(const std::filesystem::path& path);

}  // namespace reckon
