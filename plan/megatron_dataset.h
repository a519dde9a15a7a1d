// Megatron-LM's indexed data: NAME.idx with lengths and places, NAME.bin with bare tokens.
#pragma once

#include <filesystem>
#include <memory>

#include "plan/document_source.h"

namespace reckon {

/// `path` is either of the two files. A document is what the index's document borders enclose (one or more sequences).
/// The vocabulary is not stored; vocabulary() is the largest that the token type can hold, at most 2^31 - 1. Throws
/// ConfigError.
std::unique_ptr<DocumentSource> open_megatron(const std::filesystem::path& path);

}  // namespace reckon
