#include "plan/errors.h"
#include "runtime/train/input/sentence_pieces.h"

namespace reckon {

std::unique_ptr<DocumentSource> open_sentence_pieces(const std::filesystem::path&, const std::filesystem::path& model) {
  throw ConfigError({{"this build has no SentencePiece to read a model with; preset cpu (./bootstrap build) has it",
                      model.string(), 0, 0, "train.tokenizer"}});
}

}  // namespace reckon
