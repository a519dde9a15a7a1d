// Token files, this project's own format (.tokens), little-endian:
//
//   bytes 0-7    "RECKONTK"
//   8-11         u32 version, 1
//   12-15        u32 bytes of one token: 1, 2 or 4
//   16-23        u64 vocabulary: every token is below
//   24-31        u64 documents
//   32-39        u64 tokens
//   40-47        u64 checksum of the tokens as stored (FNV-1a, 64 bits)
//   48-55        u64 checksum of bytes 0-47 and of the starts
//   56-          tokens, then u64 starts[documents + 1] in tokens (starts[0] = 0, strictly rising, last = tokens)
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <vector>

#include "plan/document_source.h"

namespace reckon {

/// Whether the file starts with the format's magic.
bool is_token_file(const std::filesystem::path& path);

/// Opens a token file; header, starts and their checksum are checked. Throws ConfigError.
std::unique_ptr<DocumentSource> open_token_file(const std::filesystem::path& path);

/// Reads all tokens and compares their checksum. Throws ConfigError when they differ.
void verify_token_file(const std::filesystem::path& path);

/// Writes a token file document by document. It appears under its name only when finish() has succeeded.
class TokenFileWriter {
 public:
  /// Tokens are stored in 1, 2 or 4 bytes, the fewest that hold `vocabulary`. Throws RunError when it cannot be
  /// written.
  TokenFileWriter(const std::filesystem::path& path, std::int64_t vocabulary);
  ~TokenFileWriter();
  TokenFileWriter(const TokenFileWriter&) = delete;
  TokenFileWriter& operator=(const TokenFileWriter&) = delete;

  /// Empty documents are skipped. Throws ConfigError for a token outside the vocabulary.
  void add(std::span<const std::int32_t> document);
  void finish();

 private:
  std::filesystem::path path_, unfinished_;
  std::int64_t vocabulary_ = 0;
  int token_bytes_ = 4;
  std::ofstream out_;
  std::vector<std::uint64_t> starts_{0};
  std::uint64_t checksum_ = 0;
};

}  // namespace reckon
