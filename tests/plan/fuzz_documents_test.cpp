// Mutated files of tokens, text and lengths: every document is read, or the file is refused by a ConfigError. Checksums
// are made right again after a mutation, as an enemy would, so that the checks behind them are reached.
#include <gtest/gtest.h>

#include <cstring>

#include "plan/document_lengths.h"
#include "plan/document_source.h"
#include "plan/little_endian.h"
#include "plan/read_only_file.h"
#include "plan/token_file.h"
#include "tests/support/mutate.h"
#include "tests/support/temporary_folder.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;

/// All tokens are below the vocabulary, and no more are read than the file has bytes.
void read_everything(const fs::path& file) {
  const auto source = open_documents(file);
  std::int64_t bytes = 0, tokens = 0;
  for (const auto& entry : fs::directory_iterator(file.parent_path()))
    bytes += static_cast<std::int64_t>(entry.file_size());
  for (std::int64_t document = 0; document < source->documents(); ++document) {
    ASSERT_GE(source->length(document), 1);
    tokens += source->length(document);
    ASSERT_LE(tokens, 2 * bytes);  // of text: every byte and an end for each document
    for (const std::int32_t token : source->read_all(document)) {
      ASSERT_GE(token, 0);
      ASSERT_LT(token, source->vocabulary());
    }
  }
}

std::string bytes_of(const fs::path& file) {
  const ReadOnlyFile open(file);
  return open.read_text(0, open.size());
}

std::uint64_t fnv1a(std::string_view bytes, std::uint64_t hash) {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

/// The index checksum of a token file whose header lies about anything else; the format is in plan/token_file.h.
std::string sealed(std::string text) {
  if (text.size() < 56) return text;
  const auto width = read_little_endian<std::uint32_t>(&text[12]);
  const auto tokens = read_little_endian<std::uint64_t>(&text[32]);
  if (tokens > text.size() || width > 4 || 56 + tokens * width > text.size()) return text;
  const std::string_view starts = std::string_view(text).substr(56 + tokens * width);
  const std::uint64_t hash = fnv1a(starts, fnv1a(std::string_view(text).substr(0, 48), 14695981039346656037ull));
  std::memcpy(&text[48], &hash, 8);
  return text;
}

TEST(FuzzDocuments, TokenFiles) {
  const TemporaryFolder folder;
  std::vector<std::string> texts;
  for (const std::int64_t vocabulary : {100, 1000, 100000}) {
    TokenFileWriter writer(folder.path() / "good", vocabulary);
    writer.add(std::vector<std::int32_t>{1, 2, 3, 99});
    writer.add(std::vector<std::int32_t>{4});
    writer.add(std::vector<std::int32_t>(40, 7));
    writer.finish();
    texts.push_back(bytes_of(folder.path() / "good"));
  }
  fs::remove(folder.path() / "good");
  fuzz(texts, Mutator(), 3000, [&](const std::string& text, Random& random) {
    const fs::path file = folder.write("mutant.tokens", random() % 4 == 0 ? text : sealed(text));
    read_everything(file);
    verify_token_file(file);
  });
}

/// Three sequences of 2, 0 and 3 tokens in two documents; two bytes a token.
std::string megatron_index() {
  std::string text("MMIDIDX\0\0", 9);
  append_little_endian(text, std::uint64_t{1});
  text += '\x08';
  append_little_endian(text, std::uint64_t{3});
  append_little_endian(text, std::uint64_t{3});
  for (const std::int32_t length : {2, 0, 3}) append_little_endian(text, length);
  for (const std::int64_t pointer : {0, 4, 4}) append_little_endian(text, pointer);
  for (const std::int64_t border : {0, 1, 3}) append_little_endian(text, border);
  return text;
}

TEST(FuzzDocuments, MegatronIndexAndData) {
  const TemporaryFolder folder;
  const std::string data("\1\0\2\0\3\0\4\0\5\0", 10);
  fuzz({megatron_index()}, Mutator(), 3000, [&](const std::string& text, Random& random) {
    folder.write("d.bin", random() % 8 == 0 ? data.substr(0, random() % data.size()) : data);
    read_everything(folder.write("d.idx", text));
  });
}

TEST(FuzzDocuments, JsonLinesAndText) {
  const std::vector<std::string> texts = {
      "{\"text\": \"one\"}\n\n{\"id\": 7, \"text\": \"z\\u00e4h \\ud83d\\ude00\"}\n",
      "{\"meta\": {\"a\": [1, {\"text\": \"no\"}]}, \"text\": \"yes\"}"};
  const Mutator mutator({"\"text\": ", "\\u", "\\ud800", "{\"text\": \"a\"}\n", "\r\n"});
  const TemporaryFolder folder;
  fuzz(texts, mutator, 3000, [&](const std::string& text, Random& random) {
    const fs::path file = folder.path() / (random() % 4 == 0 ? "d.txt" : "d.jsonl");
    for (const char* name : {"d.txt", "d.jsonl"}) fs::remove(folder.path() / name);
    read_everything(folder.write(file.filename(), text));
  });
}

TEST(FuzzDocuments, LengthFiles) {
  const TemporaryFolder folder;
  fuzz({"# tokens\n128\n64Ki\n\n 1000 # one\n7\n"}, Mutator({"k", "Ki", "1e6"}), 3000,
       [&](const std::string& text, Random&) {
         for (const std::int64_t length : read_lengths(folder.write("d.lengths", text))) ASSERT_GE(length, 1);
       });
}

}  // namespace
}  // namespace reckon
