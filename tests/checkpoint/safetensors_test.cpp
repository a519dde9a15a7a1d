// Safetensors files written and read, and files that lie about themselves.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "plan/errors.h"
#include "plan/little_endian.h"
#include "runtime/checkpoint/safetensors_file.h"
#include "runtime/checkpoint/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

namespace reckon {
namespace {

std::string file_text(const std::string& header, std::size_t data_bytes) {
  std::string text;
  append_little_endian(text, static_cast<std::uint64_t>(header.size()));
  return text + header + std::string(data_bytes, '\0');
}

/// What is said of a file with this header and so many bytes of data; empty = nothing is wrong.
std::string refusal(const std::string& header, std::size_t data_bytes) {
  const TemporaryFolder folder;
  try {
    const SafetensorsFile file(folder.write("x.safetensors", file_text(header, data_bytes)));
    return "";
  } catch (const ConfigError& error) {
    const std::string text = to_string(error.diagnostics().front());
    EXPECT_NE(text.find("x.safetensors"), std::string::npos) << text;
    return text;
  }
}

TEST(Safetensors, WhatIsWrittenIsReadBack) {
  const TemporaryFolder folder;
  SafetensorsHeader header;
  header.metadata["format"] = "pt";
  header.tensors = {{"b", "F32", {2, 3}, 0, 0}, {"a", "BF16", {3}, 0, 0}};
  SafetensorsWriter writer(folder.path() / "x.safetensors", header);
  writer.append(std::vector<float>{1, 2, 3, 4});
  writer.append(std::vector<float>{5, 6});
  writer.append(std::vector<float>{1.00390625f, 1.01171875f, -3});  // 1 + 2^-8, 1 + 3 * 2^-8: ties go to even
  const FileSeal seal = writer.finish();
  EXPECT_EQ(seal, seal_of(folder.path() / "x.safetensors"));

  const SafetensorsFile file(folder.path() / "x.safetensors");
  EXPECT_EQ(file.header().metadata.at("format"), "pt");
  std::vector<float> b(4), a(3);
  file.read(*file.header().find("b"), 1, b);
  file.read(*file.header().find("a"), 0, a);
  EXPECT_EQ(b, (std::vector<float>{2, 3, 4, 5}));
  EXPECT_EQ(a, (std::vector<float>{1.0f, 1.015625f, -3}));
}

TEST(Safetensors, EveryFloatingTypeIsRead) {
  const TemporaryFolder folder;
  std::string data;
  append_little_endian(data, std::bit_cast<std::uint64_t>(-2.5));
  // Half precision: 1, the smallest subnormal (2^-24), the largest (65504), -infinity.
  for (const std::uint16_t half : {0x3C00, 0x0001, 0x7BFF, 0xFC00}) append_little_endian(data, half);
  const std::string header =
      R"({"d":{"dtype":"F64","shape":[],"data_offsets":[0,8]},"h":{"dtype":"F16","shape":[4],"data_offsets":[8,16]}})";
  const SafetensorsFile file(folder.write("x.safetensors", file_text(header, 0) + data));
  std::vector<float> d(1), h(4);
  file.read(*file.header().find("d"), 0, d);
  file.read(*file.header().find("h"), 0, h);
  EXPECT_EQ(d[0], -2.5f);
  EXPECT_EQ(h, (std::vector<float>{1, std::ldexp(1.0f, -24), 65504, -std::numeric_limits<float>::infinity()}));
}

TEST(Safetensors, HostileHeadersAreRefusedWithASentence) {
  const auto one = [](const std::string& fields) { return R"({"t":{)" + fields + "}}"; };
  const auto contains = [](const std::string& text, const std::string& phrase) {
    EXPECT_NE(text.find(phrase), std::string::npos) << text;
  };
  EXPECT_EQ(refusal(one(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])"), 8), "");
  contains(refusal(one(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])"), 4), "ends at byte 8 of 4");
  contains(refusal(one(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])"), 9), "last 1 bytes belong to no tensor");
  contains(refusal(one(R"("dtype":"F32","shape":[2],"data_offsets":[4,12])"), 12), "4 bytes before tensor \"t\"");
  contains(refusal(one(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"), 8), "needs 12 bytes");
  contains(refusal(one(R"("dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,0])"), 0), "impossible");
  contains(refusal(one(R"("dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,0])"), 0), "whole numbers");
  contains(refusal(one(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), 8), "whole numbers");
  contains(refusal(one(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"), 8), "data_offsets");
  contains(refusal(one(R"("dtype":"F31","shape":[2],"data_offsets":[0,8])"), 8), "unknown dtype \"F31\"");
  contains(refusal(one(R"("shape":[2],"data_offsets":[0,8])"), 8), "has no dtype");
  contains(refusal(R"({"a":{"dtype":"U8","shape":[6],"data_offsets":[0,6]},"b":{"dtype":"U8","shape":[4],)"
                   R"("data_offsets":[4,8]}})",
                   8),
           "tensor \"b\" overlaps tensor \"a\"");
  contains(refusal(R"({"a":1,"a":2})", 0), "the key \"a\" twice");
  contains(refusal("[]", 0), "no JSON object");
  contains(refusal("{", 0), "no JSON");
  contains(refusal(std::string(100000, '['), 0), "nests deeper");
  contains(refusal("{\"\\u001b[31mred\":{}}", 0), R"(tensor "\u001b[31mred" has no dtype)");
}

TEST(Safetensors, ALengthBeyondTheFileIsNotBelieved) {
  const TemporaryFolder folder;
  for (const std::uint64_t length : {std::uint64_t{3}, std::uint64_t{1} << 62, ~std::uint64_t{0}}) {
    std::string text;
    append_little_endian(text, length);
    EXPECT_THROW(SafetensorsFile(folder.write("x", text + "{}")), ConfigError) << length;
  }
  EXPECT_THROW(SafetensorsFile(folder.write("x", "short")), ConfigError);
}

}  // namespace
}  // namespace reckon
