// `reckon tokenize` as a user runs it: what is written, and sentences for input that cannot be read.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "plan/byte_tokens.h"
#include "plan/token_file.h"
#include "tests/support/run_command.h"

namespace reckon::test {
namespace {

using Tokens = std::vector<std::int32_t>;

class Tokenize : public testing::Test {
 protected:
  std::string out() const { return folder_.path() + "/corpus.tokens"; }
  CommandResult tokenize(const std::string& input, const std::string& more = "") const {
    return run_command("reckon tokenize " + input + " --out " + out() + " " + more);
  }

  TemporaryFolder folder_;
};

TEST_F(Tokenize, WritesEveryLineOfAJsonlFileAsADocumentOfBytes) {
  const auto input = folder_.write("two.jsonl", "{\"text\": \"ab\"}\n{\"id\": 3, \"text\": \"c\\u00e9\"}\n");
  const CommandResult result = tokenize(input, "--json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["schema"], "reckon.tokens/1");
  EXPECT_EQ(json["documents"], 2);
  EXPECT_EQ(json["tokens"], 7);
  const auto file = open_token_file(out());
  ASSERT_EQ(file->documents(), 2);
  EXPECT_EQ(file->vocabulary(), kByteVocabulary);
  EXPECT_EQ(file->read_all(0), (Tokens{'a', 'b', kEndToken}));
  EXPECT_EQ(file->read_all(1), (Tokens{'c', 0xC3, 0xA9, kEndToken}));
  EXPECT_NO_THROW(verify_token_file(out()));
}

TEST_F(Tokenize, NamesOfFilesNeedNotBeUtf8) {
  const auto input = folder_.write("one.txt", "ab");
  const CommandResult result =
      run_command("reckon tokenize " + input + " --out " + folder_.path() + "/\xff.tokens --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(nlohmann::json::parse(result.out)["file"].get<std::string>().find("\xEF\xBF\xBD.tokens"),
            std::string::npos);
}

TEST_F(Tokenize, CopiesTokensThatAreThereAlready) {
  const std::string first = folder_.path() + "/first.tokens";
  TokenFileWriter writer(first, 1000);
  writer.add(Tokens{5, 999});
  writer.add(Tokens{7});
  writer.finish();
  ASSERT_EQ(tokenize(first).exit_code, 0);
  const auto file = open_token_file(out());
  EXPECT_EQ(file->read_all(0), (Tokens{5, 999}));
  EXPECT_EQ(file->read_all(1), (Tokens{7}));
  const CommandResult cut = tokenize(first, "--tokenizer some.model");
  EXPECT_EQ(cut.exit_code, 2);
  EXPECT_NE(cut.err.find("holds tokens already"), std::string::npos) << cut.err;
}

TEST_F(Tokenize, RefusesWhatItCannotReadAndLeavesNoFile) {
  const auto broken = folder_.write("broken.jsonl", "{\"text\": \"fine\"}\n{\"text\": \"no end\n");
  const auto latin = folder_.write("latin.txt", "caf\xE9");
  const auto refused = [&](const std::string& input, const std::string& because) {
    const CommandResult result = tokenize(input);
    EXPECT_EQ(result.exit_code, 2) << input;
    EXPECT_NE(result.err.find(because), std::string::npos) << result.err;
    EXPECT_FALSE(std::filesystem::exists(out())) << input;
  };
  refused(broken, "broken.jsonl:2");
  refused(latin, "UTF-8");
  refused(folder_.path() + "/absent.txt", "there is no such file or folder");
  const CommandResult same = run_command("reckon tokenize " + latin + " --out " + latin);
  EXPECT_EQ(same.exit_code, 2);
  EXPECT_NE(same.err.find("input and output at once"), std::string::npos) << same.err;
}

}  // namespace
}  // namespace reckon::test
