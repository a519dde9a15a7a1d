// Text cut into the pieces of a SentencePiece model, through that library.
#pragma once

#include <filesystem>
#include <memory>

#include "plan/document_source.h"
#include "runtime/train/input/text_tokenizer.h"

namespace reckon {

/// Cuts text into the model's pieces, each document closed by the model's end mark where it has one. Throws
/// ConfigError: no readable model; in a build without the library always, saying which preset has it.
std::unique_ptr<TextTokenizer> open_sentence_piece_model(const std::filesystem::path& model);

/// The text documents of `data` (text_documents.h) as pieces of the model file. Everything is read and cut here.
/// Throws ConfigError: no readable model, no text, or a document that gives no piece.
std::unique_ptr<DocumentSource> open_sentence_pieces(const std::filesystem::path& data,
                                                     const std::filesystem::path& model);

}  // namespace reckon
