// Truncated and mutated launch files of every format are read or refused with a sentence, whatever they contain.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "plan/exchange/foreign_plan.h"
#include "plan/yaml_document.h"
#include "tests/support/mutate.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;

/// Texts by the kind of file: the name of their folder.
std::map<std::string, std::vector<std::string>> files() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(RECKON_SOURCE_DIR) / "tests/exchange/files"))
    if (entry.is_regular_file()) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  std::map<std::string, std::vector<std::string>> texts;
  for (const fs::path& file : found) texts[file.parent_path().filename()].push_back(read_text_file(file));
  return texts;
}

/// `told`: the user names the kind. Throws Error.
void import_text(const std::string& text, const std::string& kind, bool told) {
  ImportOptions options;
  if (told) options.kind = foreign_kind(kind);
  const ForeignPlan plan = import_plan(text, "file", options);
  EXPECT_LT(foreign_plan_text(plan).size(), 4 * text.size() + 100000);
}

void try_import(const std::string& text, const std::string& kind, bool told) {
  try {
    import_text(text, kind, told);
  } catch (const Error& error) {
    EXPECT_FALSE(error.diagnostics().empty());
  }
}

TEST(ImportFuzz, EveryTruncationIsReadOrRefused) {
  for (const auto& [kind, texts] : files())
    for (const std::string& text : texts)
      for (std::size_t length = 0; length < text.size(); length += 1 + text.size() / 60)
        try_import(text.substr(0, length), kind, length % 2 == 0);
}

class ImportMutants : public testing::TestWithParam<std::string> {};

TEST_P(ImportMutants, AreReadOrRefused) {
  const Mutator mutator({"$(", "${", "$((", "))", "--", "`", "$A", "export ", "\\\n", "--num-layers ",
                         "[parallelism]\n", "\"auto\"", "2147483647", "4294967296", "!!python/object:os.system "});
  fuzz(files().at(GetParam()), mutator, 5000,
       [](const std::string& text, Random& random) { import_text(text, GetParam(), random() % 2 == 0); });
}

INSTANTIATE_TEST_SUITE_P(Kinds, ImportMutants,
                         testing::Values("accelerate", "deepspeed", "huggingface", "megatron", "nanotron",
                                         "torchtitan"),
                         [](const auto& instance) { return instance.param; });

TEST(ImportFuzz, LargeAndNestedInputsEnd) {
  std::string growing = "A=--x\n";
  for (int i = 0; i < 64; ++i) growing += "A=\"$A$A\"\n";  // doubling would be 2^64 letters
  try_import(growing + "--num-layers $A", "megatron", true);
  try_import(std::string(1 << 20, '('), "megatron", true);
  try_import("--num-layers $((" + std::string(100000, '(') + "1", "megatron", true);
  try_import(std::string(100000, '{'), "deepspeed", true);
  try_import("a = " + std::string(100000, '['), "torchtitan", true);
  std::string many;
  for (int i = 0; i < 20000; ++i) many += "--option-" + std::to_string(i) + " 1 ";
  try_import(many, "megatron", true);
}

}  // namespace
}  // namespace reckon
