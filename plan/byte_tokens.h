// The built-in tokenizer: a token is a byte. Three marks follow the 256 bytes: begin and padding are reserved, the end
// of a document is used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "plan/document_source.h"

namespace reckon {

constexpr std::int32_t kEndToken = 257;
constexpr std::int64_t kByteVocabulary = 259;

/// The bytes of `text`, then kEndToken.
std::vector<std::int32_t> byte_tokens(std::string_view text);

/// Text documents (text_documents.h) as byte tokens, each closed by kEndToken.
std::unique_ptr<DocumentSource> open_text(const std::filesystem::path& path);

}  // namespace reckon
