#include "plan/errors.h"
#include "runtime/train/input/sentence_pieces.h"

namespace reckon {

std::unique_ptr<TextTokenizer> open_sentence_piece_model(const std::filesystem::path& model) {
  throw ConfigError({{"this build has no SentencePiece to read a model with; preset cpu (./bootstrap build) has it",
                      model.string(), 0, 0, "train.tokenizer"}});
}

std::unique_ptr<DocumentSource> open_sentence_pieces(const std::filesystem::path&, const std::filesystem::path& model) {
  open_sentence_piece_model(model);
  return nullptr;
}

}  // namespace reckon
