#include "runtime/checkpoint/xxh64.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace reckon {
namespace {

std::uint64_t checksum(std::string_view text) {
  Xxh64 hash;
  hash.update(text);
  return hash.digest();
}

// Values of `xxhsum -H1` (xxHash's own program).
TEST(Xxh64, GivesTheValuesOfItsReference) {
  EXPECT_EQ(checksum(""), 0xEF46DB3751D8E999u);
  EXPECT_EQ(checksum("a"), 0xD24EC4F1A98C6E5Bu);
  EXPECT_EQ(checksum("abc"), 0x44BC2CF5AD770999u);
  EXPECT_EQ(checksum("Nobody inspects the spammish repetition"), 0xFBCEA83C8A378BF1u);  // 39 bytes: one whole stripe
}

TEST(Xxh64, DoesNotDependOnHowTheBytesArrive) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 7);
  for (const std::size_t step : {1u, 3u, 31u, 32u, 33u, 100u}) {
    Xxh64 hash;
    for (std::size_t at = 0; at < text.size(); at += step) hash.update(std::string_view(text).substr(at, step));
    EXPECT_EQ(hash.digest(), checksum(text)) << step;
  }
}

}  // namespace
}  // namespace reckon
