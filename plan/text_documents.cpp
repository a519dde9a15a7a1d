#include "plan/text_documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <system_error>

#include "plan/errors.h"
#include "plan/json_text_field.h"
#include "plan/read_only_file.h"

namespace reckon {

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 24> kTextEndings = {
    "",   ".txt", ".text", ".md", ".rst", ".org", ".tex", ".html", ".htm", ".xml",  ".csv", ".json",
    ".c", ".cc",  ".cpp",  ".h",  ".hpp", ".py",  ".sh",  ".js",   ".rs",  ".java", ".go",  ".jsonl"};
constexpr std::int64_t kLongestDocument = std::int64_t{1} << 30, kScanBytes = 1 << 20;

bool holds_text(const fs::path& file) {
  const std::string ending = file.extension().string();
  return std::find(kTextEndings.begin(), kTextEndings.end(), ending) != kTextEndings.end();
}

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code problem;
  fs::recursive_directory_iterator walk(folder, problem);
  for (; !problem && walk != fs::recursive_directory_iterator(); walk.increment(problem)) {
    std::error_code vanished;
    if (holds_text(walk->path()) && walk->is_regular_file(vanished)) files.push_back(walk->path());
  }
  if (problem) throw ConfigError({{"cannot be listed: " + problem.message(), folder.string(), 0, 0, {}}});
  std::sort(files.begin(), files.end());
  return files;
}

/// Lines that are not blank.
void add_lines(const fs::path& path, std::vector<TextDocument>& list) {
  const ReadOnlyFile file(path);
  std::int64_t start = 0, number = 1;
  bool blank = true;
  const auto end_line = [&](std::int64_t end) {
    if (!blank) list.push_back({path, start, end - start, number});
    start = end + 1, ++number, blank = true;
  };
  for (std::int64_t at = 0; at < file.size(); at += kScanBytes) {
    const std::string part = file.read_text(at, std::min(kScanBytes, file.size() - at));
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (part[i] == '\n') end_line(at + static_cast<std::int64_t>(i));
      else if (part[i] != ' ' && part[i] != '\t' && part[i] != '\r') blank = false;
    }
  }
  end_line(file.size());
}

void add_file(const fs::path& path, std::vector<TextDocument>& list) {
  if (path.extension() == ".jsonl") return add_lines(path, list);
  const std::int64_t bytes = ReadOnlyFile(path).size();
  if (bytes > 0) list.push_back({path, 0, bytes, 0});
}

[[noreturn]] void refuse(const TextDocument& document, std::string message) {
  throw ConfigError({{std::move(message), document.file.string(), static_cast<int>(document.line), 1, {}}});
}

std::string text_of_line(const TextDocument& document, const std::string& line) {
  try {
    const auto text = json_text_field(line, "text");
    if (!text) refuse(document, "this line has no field \"text\"");
    return *text;
  } catch (const JsonProblem& problem) {
    refuse(document, fmt::format("not a JSON object with a field \"text\": {} (byte {} of the line)", problem.what(),
                                 problem.byte));
  }
}

}  // namespace

std::vector<TextDocument> list_text_documents(const fs::path& path) {
  std::vector<TextDocument> list;
  if (folder_exists(path))
    for (const fs::path& file : files_below(path)) add_file(file, list);
  else add_file(path, list);
  if (list.empty())
    throw ConfigError({{"there is no text here: no file with text in it was found", path.string(), 0, 0, {}}});
  return list;
}

std::string read_text(const TextDocument& document) {
  if (document.bytes > kLongestDocument)
    refuse(document, fmt::format("a document of {} bytes is longer than 1 GiB", document.bytes));
  std::string text = ReadOnlyFile(document.file).read_text(document.offset, document.bytes);
  const std::size_t invalid = first_invalid_utf8(text);
  if (invalid < text.size())
    refuse(document, fmt::format("byte {} is not valid UTF-8", document.offset + static_cast<std::int64_t>(invalid)));
  return document.line > 0 ? text_of_line(document, text) : text;
}

std::size_t first_invalid_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned char lead = byte(i);
    const std::size_t length = lead < 0x80                   ? 1
                               : lead >= 0xC2 && lead < 0xE0 ? 2
                               : lead >= 0xE0 && lead < 0xF0 ? 3
                               : lead >= 0xF0 && lead < 0xF5 ? 4
                                                             : 0;
    if (length == 0 || i + length > text.size()) return i;
    for (std::size_t k = 1; k < length; ++k)
      if ((byte(i + k) & 0xC0) != 0x80) return i;
    const unsigned char second = length > 1 ? byte(i + 1) : 0;
    const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
    const bool outside = (lead == 0xED && second > 0x9F) || (lead == 0xF4 && second > 0x8F);  // surrogates, > 10FFFF
    if (overlong || outside) return i;
    i += length;
  }
  return text.size();
}

}  // namespace reckon
