#include "plan/text_documents.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "plan/byte_tokens.h"
#include "plan/errors.h"
#include "plan/json_text_field.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;

class TextDocuments : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_ / "sub"); }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path store(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  std::string refusal(const fs::path& path) {
    try {
      for (const TextDocument& document : list_text_documents(path)) read_text(document);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  }
  const fs::path folder_ = fs::path(testing::TempDir()) / ("reckon-text-" + std::to_string(::getpid()));
};

TEST_F(TextDocuments, FolderIsReadInOrderOfPaths) {
  store("b.txt", "bee");
  store("sub/a", "nested");
  store("a.md", "first");
  store("empty.txt", "");
  store("picture.png", "\x89PNG");
  store("c.jsonl", "{\"text\": \"one\"}\n\n  \n{\"id\": [1, {\"text\": 2}], \"text\": \"t\\u00e9\\ud83d\\ude00\\n\"}");
  std::vector<std::string> texts;
  for (const TextDocument& document : list_text_documents(folder_)) texts.push_back(read_text(document));
  EXPECT_EQ(texts, (std::vector<std::string>{"first", "bee", "one", "t\xC3\xA9\xF0\x9F\x98\x80\n", "nested"}));
}

TEST_F(TextDocuments, BytesAreTokensAndADocumentEndsWithAMark) {
  store("a.txt", "h\xC3\xA9");
  store("b.jsonl", "{\"text\": \"\\u00e9\"}");
  const auto source = open_documents(folder_);
  EXPECT_EQ(source->vocabulary(), kByteVocabulary);
  EXPECT_EQ(source->lengths(), (std::vector<std::int64_t>{4, 3}));
  EXPECT_EQ(source->read_all(0), (std::vector<std::int32_t>{'h', 0xC3, 0xA9, kEndToken}));
  EXPECT_EQ(source->read_all(1), (std::vector<std::int32_t>{0xC3, 0xA9, kEndToken}));
}

TEST_F(TextDocuments, NothingToReadIsAnError) {
  EXPECT_NE(refusal(folder_ / "sub").find("there is no text here"), std::string::npos);
  EXPECT_NE(refusal(folder_ / "missing").find("cannot be opened"), std::string::npos);
}

TEST_F(TextDocuments, InvalidUtf8IsNamedWithItsByte) {
  EXPECT_NE(refusal(store("latin1.txt", "caf\xE9!")).find("latin1.txt: byte 3 is not valid UTF-8"), std::string::npos);
}

TEST_F(TextDocuments, BrokenJsonLinesAreNamedWithTheirLine) {
  EXPECT_NE(refusal(store("a.jsonl", "{\"text\": \"x\"}\n{\"text\": 3}\n")).find("a.jsonl:2:1:"), std::string::npos);
  EXPECT_NE(refusal(store("b.jsonl", "{\"body\": \"x\"}\n")).find("no field \"text\""), std::string::npos);
  EXPECT_NE(refusal(store("c.jsonl", "{\"text\": \"x\n")).find("ends inside a value"), std::string::npos);
}

TEST(FirstInvalidUtf8, KnowsTheEdges) {
  const auto valid = [](std::string_view text) { return first_invalid_utf8(text) == text.size(); };
  EXPECT_TRUE(valid(""));
  EXPECT_TRUE(valid("\xC2\x80 \xDF\xBF \xE0\xA0\x80 \xEF\xBF\xBF \xF0\x90\x80\x80 \xF4\x8F\xBF\xBF"));
  EXPECT_FALSE(valid("\xC1\xBF"));          // overlong
  EXPECT_FALSE(valid("\xE0\x9F\xBF"));      // overlong
  EXPECT_FALSE(valid("\xED\xA0\x80"));      // surrogate
  EXPECT_FALSE(valid("\xF4\x90\x80\x80"));  // beyond 10FFFF
  EXPECT_FALSE(valid("\x80"));
  EXPECT_EQ(first_invalid_utf8("ab\xE2\x82"), 2u);  // cut short
}

TEST(JsonTextField, SkipsOtherValuesAndRefusesWhatIsNotJson) {
  EXPECT_EQ(json_text_field(R"({"a": [1, -2.5e3, null, {"text": "no"}], "b": true, "text": "yes"})", "text"), "yes");
  EXPECT_EQ(json_text_field("{}", "text"), std::nullopt);
  EXPECT_EQ(json_text_field(R"({"text": "\"\\\/\b\f\n\r\t"})", "text"), "\"\\/\b\f\n\r\t");
  for (const char* broken :
       {"", "[]", "{", R"({"text"})", R"({"text": "a"} x)", R"({"text": "\q"})", R"({"text": "\ud800"})",
        R"({"text": "\u12g4"})", R"({"a": })", R"({"a": 1 "text": "x"})", "{\"text\": \"a\tb\"}"})
    EXPECT_THROW(json_text_field(broken, "text"), JsonProblem) << broken;
  const std::string deep = "{\"a\": " + std::string(100000, '[');
  EXPECT_THROW(json_text_field(deep, "text"), JsonProblem);
}

}  // namespace
}  // namespace reckon
