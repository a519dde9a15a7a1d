#include "plan/token_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "plan/errors.h"
#include "plan/little_endian.h"
#include "plan/megatron_dataset.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;
using Tokens = std::vector<std::int32_t>;

class TokenFiles : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name, const std::vector<Tokens>& documents, std::int64_t vocabulary) {
    TokenFileWriter writer(folder_ / name, vocabulary);
    for (const Tokens& document : documents) writer.add(document);
    writer.finish();
    return folder_ / name;
  }
  static std::string bytes_of(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  fs::path store(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / ("reckon-token-files-" + std::to_string(::getpid()));
};

TEST_F(TokenFiles, EveryWidthReadsBackWithItsDocuments) {
  std::mt19937 random(7);
  for (const std::int64_t vocabulary : {200, 259, 65536, 65537, 2000000000}) {
    std::vector<Tokens> documents;
    for (const int length : {1, 5, 300}) {
      documents.emplace_back();
      for (int i = 0; i < length; ++i)
        documents.back().push_back(static_cast<std::int32_t>(random() % static_cast<unsigned long>(vocabulary)));
    }
    const auto source = open_documents(write("a.tokens", documents, vocabulary));
    ASSERT_EQ(source->documents(), 3);
    EXPECT_EQ(source->vocabulary(), vocabulary);
    EXPECT_EQ(source->lengths(), (std::vector<std::int64_t>{1, 5, 300}));
    for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(source->read_all(i), documents[static_cast<std::size_t>(i)]);
    Tokens part(7);
    source->read(2, 100, part);
    EXPECT_EQ(part, Tokens(documents[2].begin() + 100, documents[2].begin() + 107));
    verify_token_file(folder_ / "a.tokens");
  }
}

TEST_F(TokenFiles, LayoutIsTheDocumentedOne) {
  const std::string bytes = bytes_of(write("a.tokens", {{258}, {1, 2}}, 259));
  ASSERT_EQ(bytes.size(), 56u + 3 * 2 + 3 * 8);
  EXPECT_EQ(bytes.substr(0, 8), "RECKONTK");
  EXPECT_EQ(read_little_endian<std::uint32_t>(&bytes[12]), 2u);
  EXPECT_EQ(read_little_endian<std::int64_t>(&bytes[24]), 2);
  EXPECT_EQ(bytes.substr(56, 6), std::string("\x02\x01\x01\x00\x02\x00", 6));
  EXPECT_EQ(read_little_endian<std::int64_t>(&bytes[62 + 8]), 1);
}

TEST_F(TokenFiles, EveryDamagedByteIsNoticed) {
  const std::string whole = bytes_of(write("a.tokens", {{1, 2, 3}, {4}}, 100));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x11);
    const fs::path file = store("damaged.tokens", damaged);
    const auto check = [&] {
      open_token_file(file);
      verify_token_file(file);
    };
    EXPECT_THROW(check(), ConfigError) << "byte " << i;
  }
}

TEST_F(TokenFiles, ShortenedAndLengthenedFilesAreRefused) {
  const std::string whole = bytes_of(write("a.tokens", {{1, 2, 3}, {4}}, 100));
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW(open_token_file(store("short.tokens", whole.substr(0, size))), ConfigError) << size;
  EXPECT_THROW(open_token_file(store("long.tokens", whole + "x")), ConfigError);
}

TEST_F(TokenFiles, ReadsAreBounded) {
  const auto source = open_documents(write("a.tokens", {{1, 2, 3}, {4}}, 100));
  Tokens two(2);
  EXPECT_THROW(source->read(0, 2, two), std::out_of_range);
  EXPECT_THROW(source->read(0, -1, two), std::out_of_range);
  EXPECT_THROW(source->read(1, 0, two), std::out_of_range);
  EXPECT_THROW(source->length(2), std::out_of_range);
}

TEST_F(TokenFiles, NothingHalfWrittenIsLeft) {
  {
    TokenFileWriter writer(folder_ / "b.tokens", 10);
    writer.add(Tokens{1, 2});
    EXPECT_THROW(writer.add(Tokens{10}), ConfigError);
    EXPECT_FALSE(fs::exists(folder_ / "b.tokens"));
  }
  EXPECT_TRUE(fs::is_empty(folder_));
  TokenFileWriter empty(folder_ / "c.tokens", 10);
  EXPECT_THROW(empty.finish(), ConfigError);
  EXPECT_THROW(TokenFileWriter(folder_ / "no" / "such" / "folder.tokens", 10), RunError);
}

/// A Megatron index over sequences of u16 tokens.
std::string megatron_index(const std::vector<std::int32_t>& lengths, const std::vector<std::int64_t>& borders) {
  std::string index("MMIDIDX\0\0", 9);
  append_little_endian(index, std::uint64_t{1});
  append_little_endian(index, std::uint8_t{8});
  append_little_endian(index, static_cast<std::uint64_t>(lengths.size()));
  append_little_endian(index, static_cast<std::uint64_t>(borders.size()));
  for (const std::int32_t length : lengths) append_little_endian(index, length);
  std::int64_t pointer = 0;
  for (const std::int32_t length : lengths) append_little_endian(index, pointer), pointer += 2 * length;
  for (const std::int64_t border : borders) append_little_endian(index, border);
  return index;
}

TEST_F(TokenFiles, MegatronDocumentsMayHaveSeveralSequences) {
  std::string data;
  for (std::uint16_t token = 100; token < 110; ++token) append_little_endian(data, token);
  store("m.bin", data);
  store("m.idx", megatron_index({4, 3, 0, 3}, {0, 2, 3, 4}));  // the second document is empty
  for (const char* name : {"m.bin", "m.idx"}) {
    const auto source = open_documents(folder_ / name);
    ASSERT_EQ(source->documents(), 2);
    EXPECT_EQ(source->read_all(0), (Tokens{100, 101, 102, 103, 104, 105, 106}));
    EXPECT_EQ(source->read_all(1), (Tokens{107, 108, 109}));
    Tokens across(3);
    source->read(0, 3, across);
    EXPECT_EQ(across, (Tokens{103, 104, 105}));
  }
}

TEST_F(TokenFiles, BrokenMegatronIndexesAreRefused) {
  std::string data;
  for (std::uint16_t token = 0; token < 10; ++token) append_little_endian(data, token);
  store("m.bin", data);
  const auto open = [&](const std::string& index) { open_megatron(store("m.idx", index)); };
  const std::string good = megatron_index({4, 6}, {0, 1, 2});
  EXPECT_NO_THROW(open(good));
  for (std::size_t size = 0; size < good.size(); ++size) EXPECT_THROW(open(good.substr(0, size)), ConfigError) << size;
  EXPECT_THROW(open(megatron_index({4, 7}, {0, 1, 2})), ConfigError);   // beyond the data
  EXPECT_THROW(open(megatron_index({4, -1}, {0, 1, 2})), ConfigError);  // negative length
  EXPECT_THROW(open(megatron_index({4, 6}, {0, 2, 1})), ConfigError);   // falling borders
  EXPECT_THROW(open(megatron_index({4, 6}, {0, 1})), ConfigError);      // does not reach the end
  EXPECT_THROW(open(megatron_index({0, 0}, {0, 1, 2})), ConfigError);   // no tokens
  std::string floats = good;
  floats[17] = 6;
  EXPECT_THROW(open(floats), ConfigError);
}

}  // namespace
}  // namespace reckon
