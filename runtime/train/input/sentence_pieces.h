// Text cut into the pieces of a SentencePiece model, through that library.
#pragma once

#include <filesystem>
#include <memory>

#include "plan/document_source.h"

namespace reckon {

/// The text documents of `data` (text_documents.h) as pieces of the model file, each closed by the model's end mark
/// where it has one. Everything is read and cut here. Throws ConfigError: no readable model, no text, or a document
/// that gives no piece; in a build without the library always, saying which preset has it.
std::unique_ptr<DocumentSource> open_sentence_pieces(const std::filesystem::path& data,
                                                     const std::filesystem::path& model);

}  // namespace reckon
