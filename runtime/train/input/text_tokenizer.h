// Text -> tokens, by bytes or by a SentencePiece model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plan/text_documents.h"

namespace reckon {

class TextTokenizer {
 public:
  virtual ~TextTokenizer() = default;

  /// Every token is at least 0 and below this.
  virtual std::int64_t vocabulary() const = 0;
  /// Tokens of one document's text, closed by the end mark where there is one. Throws ConfigError naming `document` for
  /// text that cannot be cut.
  virtual std::vector<std::int32_t> tokens(const std::string& text, const TextDocument& document) const = 0;
};

/// "bytes", or the path of a SentencePiece model. Throws ConfigError (key train.tokenizer).
std::unique_ptr<TextTokenizer> open_tokenizer(const std::string& tokenizer);

}  // namespace reckon
