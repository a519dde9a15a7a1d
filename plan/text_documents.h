// Documents of text: the files of a folder, the lines of a JSONL file (field "text"), or one text file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// One document: a whole file, or one line of a JSONL file.
struct TextDocument {
  std::filesystem::path file;
  std::int64_t offset = 0;  // first byte of the file or line
  std::int64_t bytes = 0;   // of the file or line, as stored
  std::int64_t line = 0;    // JSONL: line number from 1; 0 = a whole file
};

/// Documents in a fixed order (paths sorted), empty files and lines left out. In a folder the files of kinds that hold
/// text are taken (by ending, or without one), JSONL files line by line. Throws ConfigError when there is none.
std::vector<TextDocument> list_text_documents(const std::filesystem::path& path);

/// The document's text. Throws ConfigError naming file, line and byte when it is not valid UTF-8 or not valid JSON.
std::string read_text(const TextDocument& document);

/// First byte that is not part of valid UTF-8; text.size() if all of it is.
std::size_t first_invalid_utf8(std::string_view text);

}  // namespace reckon
