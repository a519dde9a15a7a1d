#include "runtime/train/input/text_tokenizer.h"

#include "plan/byte_tokens.h"
#include "runtime/train/input/sentence_pieces.h"

namespace reckon {
namespace {

class ByteTokenizer : public TextTokenizer {
 public:
  std::int64_t vocabulary() const override { return kByteVocabulary; }
  std::vector<std::int32_t> tokens(const std::string& text, const TextDocument&) const override {
    return byte_tokens(text);
  }
};

}  // namespace

std::unique_ptr<TextTokenizer> open_tokenizer(const std::string& tokenizer) {
  if (tokenizer == "bytes") return std::make_unique<ByteTokenizer>();
  return open_sentence_piece_model(tokenizer);
}

}  // namespace reckon
