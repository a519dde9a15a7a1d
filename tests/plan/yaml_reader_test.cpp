#include "plan/yaml_reader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "plan/nearest_name.h"

namespace reckon {
namespace {

/// All diagnostics that reading `yaml` as below gives, one a line.
struct Read {
  std::int64_t layers = 0;
  double theta = 0;
  bool tied = false;
  Bytes memory;
  Recompute recompute = Recompute::none;
  std::vector<std::int64_t> list;
  std::vector<Diagnostic> errors;
};

Read read_sample(const std::string& yaml) {
  Read result;
  const std::string file = "sample.yaml";
  const YamlValue document = parse_yaml(yaml, file);
  YamlReader reader(document, file, result.errors);
  reader.require("layers", result.layers);
  reader.read("theta", result.theta);
  reader.read("tied", result.tied);
  reader.read("memory", result.memory);
  reader.read("recompute", result.recompute);
  reader.read("list", result.list);
  if (auto child = reader.child("child")) {
    std::int64_t inner = 0;
    child->require("inner", inner);
    child->finish();
  }
  reader.finish();
  return result;
}

std::string failure(const std::string& yaml) {
  try {
    parse_yaml(yaml, "f.yaml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

TEST(YamlReader, ReadsTypedValues) {
  const Read read = read_sample(
      "layers: 32\ntheta: 5e5\ntied: true\nmemory: 2 GiB\nrecompute: selective\nlist: [1, 2, 3]\nchild: {inner: 1}\n");
  EXPECT_TRUE(read.errors.empty()) << to_string(read.errors.front());
  EXPECT_EQ(read.layers, 32);
  EXPECT_EQ(read.theta, 500000.0);
  EXPECT_TRUE(read.tied);
  EXPECT_EQ(read.memory.value, 2LL << 30);
  EXPECT_EQ(read.recompute, Recompute::selective);
  EXPECT_EQ(read.list, (std::vector<std::int64_t>{1, 2, 3}));
}

TEST(YamlReader, EveryErrorIsReportedWithItsPlace) {
  const Read read =
      read_sample("layers: many\ntied: 2\nmemory: 80\nrecompute: fulll\nlist: [1, x]\nchild: {iner: 1}\n");
  ASSERT_EQ(read.errors.size(), 7u);
  EXPECT_EQ(to_string(read.errors[0]),
            "sample.yaml:1:9: 'many' is not a whole number: it does not start with a number; write it like 8192, 64Ki "
            "or 10k");
  EXPECT_EQ(read.errors[1].line, 2);
  EXPECT_NE(read.errors[2].message.find("the unit is missing"), std::string::npos);
  EXPECT_EQ(read.errors[3].message, "'fulll' is not one of none, elementwise, selective, full; did you mean 'full'?");
  EXPECT_EQ(read.errors[4].column, 11);  // the place of the item, not of the list
  EXPECT_EQ(read.errors[5].key, "child.inner");
  EXPECT_EQ(to_string(read.errors[6]), "sample.yaml:6:9: unknown key 'iner'; did you mean 'inner'?");
}

TEST(YamlReader, AKeyGivenTwiceIsAnError) {
  const Read read = read_sample("layers: 1\nlayers: 2\n");
  ASSERT_EQ(read.errors.size(), 1u);
  EXPECT_EQ(to_string(read.errors[0]), "sample.yaml:2:1: the key 'layers' is given twice");
}

TEST(YamlReader, QuotedTextIsNoNumber) {
  const Read read = read_sample("layers: \"32\"\n");
  ASSERT_EQ(read.errors.size(), 1u);
  EXPECT_NE(read.errors[0].message.find("quoted text"), std::string::npos);
}

TEST(YamlReader, AnEmptyOrScalarDocumentIsAnError) {
  EXPECT_NE(read_sample("").errors.at(0).message.find("found nothing"), std::string::npos);
  EXPECT_NE(read_sample("# only a comment\n").errors.at(0).message.find("found nothing"), std::string::npos);
  EXPECT_NE(read_sample("hello").errors.at(0).message.find("found 'hello'"), std::string::npos);
}

TEST(YamlDocument, JsonIsReadToo) {
  const YamlValue value =
      parse_yaml("{\n\t\"a\": [1, 2.5, null, true],\n\t\"b\": {\"c\": \"x\\u00e9\\n\"}\n}\n", "f.json");
  EXPECT_EQ(value.find("a")->items.size(), 4u);
  EXPECT_EQ(value.find("a")->items[2].kind, YamlValue::Kind::null);
  EXPECT_EQ(value.find("b")->find("c")->text, "x\xc3\xa9\n");
}

TEST(YamlDocument, BadSyntaxHasAPlace) {
  EXPECT_EQ(failure("a: [1, 2\nb: 3\n").substr(0, 9), "f.yaml:2:");
  EXPECT_NE(failure("a: {b: 1"), "");
  EXPECT_NE(failure("\ta: 1"), "");
  EXPECT_NE(failure("a: &x [*x]").find("alias"), std::string::npos);
  EXPECT_NE(failure("a: *nothing"), "");
  EXPECT_NE(failure("a: !!python/object 1").find("tag"), std::string::npos);
  EXPECT_NE(failure("a: 1\n---\nb: 2\n").find("second document"), std::string::npos);
  EXPECT_NE(failure("[a, b]: 1").find("key"), std::string::npos);
}

TEST(YamlDocument, InvalidUtf8IsRefusedWithItsPlace) {
  EXPECT_EQ(failure("a: 1\nb: \xff\n"), "f.yaml:2:4: byte 0xFF is not valid UTF-8 text");
  EXPECT_NE(failure(std::string("a: \0b", 5)), "");
  EXPECT_NE(failure("a: \xc0\xaf"), "");      // overlong
  EXPECT_NE(failure("a: \xed\xa0\x80"), "");  // surrogate
  EXPECT_NE(failure("a: \xe2\x82"), "");      // cut off
  EXPECT_EQ(failure("a: \xe2\x82\xac \xf0\x9f\x98\x80"), "");
}

TEST(YamlDocument, DeepNestingAndAliasBombsAreRefused) {
  EXPECT_NE(failure(std::string(100000, '[')), "");
  EXPECT_NE(failure("a: " + std::string(70, '[') + std::string(70, ']')).find("nested deeper"), std::string::npos);
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char name = 'b'; name < 'l'; ++name) {
    bomb += std::string(1, name) + ": &" + name + " [";
    for (int i = 0; i < 10; ++i) bomb += std::string(i ? ", *" : "*") + static_cast<char>(name - 1);
    bomb += "]\n";
  }
  EXPECT_NE(failure(bomb).find("more than 1000000 values"), std::string::npos);
}

TEST(YamlDocument, WritingAndReadingGivesTheSameTree) {
  YamlValue root = YamlValue::mapping();
  root.add("plain", YamlValue::scalar("1f1b"));
  root.add("odd", YamlValue::scalar("a: b # c, [d] \"e\" \\ \n\t"));
  root.add("null word", YamlValue::scalar("null"));
  root.add("empty", YamlValue::scalar(""));
  root.add("list", YamlValue::sequence({YamlValue::scalar("-1"), YamlValue::scalar("x,y"), YamlValue::scalar("-")}));
  YamlValue& child = root.add("child", YamlValue::mapping());
  child.add("b", YamlValue::scalar("80 GiB"));
  YamlValue& block = child.add("block", YamlValue::sequence({}));
  block.flow = false;
  YamlValue entry = YamlValue::mapping();
  entry.add("c", YamlValue::scalar("1"));
  entry.add("d", YamlValue::scalar("2"));
  block.items = {entry, entry};
  const std::string text = write_yaml(root);
  const YamlValue read = parse_yaml(text, "f");
  EXPECT_EQ(read.find("odd")->text, root.find("odd")->text) << text;
  EXPECT_EQ(read.find("null word")->text, "null");
  EXPECT_EQ(read.find("empty")->text, "");
  EXPECT_EQ(read.find("list")->items[1].text, "x,y");
  EXPECT_EQ(read.find("list")->items[2].text, "-");
  EXPECT_EQ(read.find("child")->find("block")->items[1].find("d")->text, "2") << text;
}

TEST(ReadTextFile, SaysWhatIsWrongWithThePath) {
  const auto message = [](const std::filesystem::path& path) -> std::string {
    try {
      read_text_file(path);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_NE(message("/nonexistent/x.yaml").find("no such file"), std::string::npos);
  EXPECT_NE(message(std::filesystem::temp_directory_path()).find("directory"), std::string::npos);
  EXPECT_NE(message("/dev/zero").find("does not end"), std::string::npos);
}

TEST(NearestName, FindsTypingErrorsAndNothingElse) {
  const std::vector<std::string> known = {"tensor", "sequence", "sequence_length", "micro_batch"};
  EXPECT_EQ(nearest_name("tensro", known), "tensor");
  EXPECT_EQ(nearest_name("Tensor", known), "tensor");
  EXPECT_EQ(nearest_name("micro-batch", known), "micro_batch");
  EXPECT_EQ(nearest_name("sequence_lenght", known), "sequence_length");
  EXPECT_EQ(nearest_name("colour", known), "");
  EXPECT_EQ(nearest_name("", known), "");
}

}  // namespace
}  // namespace reckon
