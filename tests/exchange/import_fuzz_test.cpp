// Truncated and mutated launch files are read or refused with a sentence, whatever they contain.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "plan/errors.h"
#include "plan/exchange/foreign_plan.h"
#include "plan/yaml_document.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(RECKON_SOURCE_DIR) / "tests/exchange/files"))
    if (entry.is_regular_file()) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

/// Read, or refused with sentences; anything else that is thrown fails the test.
void try_import(const std::string& text, const fs::path& file, bool told) {
  ImportOptions options;
  if (told) options.kind = foreign_kind(file.parent_path().filename().string());
  try {
    const ForeignPlan plan = import_plan(text, file.string(), options);
    EXPECT_LT(foreign_plan_text(plan).size(), 4 * text.size() + 100000);
  } catch (const Error& error) {
    EXPECT_FALSE(error.diagnostics().empty());
  }
}

std::string mutated(std::string text, std::mt19937_64& random) {
  static const std::vector<std::string> kPieces = {"9999999999999999999",
                                                   "-1",
                                                   "0",
                                                   "auto",
                                                   "\"",
                                                   "'",
                                                   "{",
                                                   "}",
                                                   "[",
                                                   "]",
                                                   "$(",
                                                   "${",
                                                   "$((",
                                                   "))",
                                                   "\\",
                                                   "\n",
                                                   "\t",
                                                   ":",
                                                   "--",
                                                   "true",
                                                   "1e300",
                                                   "nan",
                                                   "\xff",
                                                   "null",
                                                   "#",
                                                   "=",
                                                   "2147483647",
                                                   "4294967296"};
  const int changes = 1 + static_cast<int>(random() % 4);
  for (int i = 0; i < changes && !text.empty(); ++i) {
    const std::size_t at = random() % text.size();
    switch (random() % 4) {
      case 0: text.erase(at, 1 + random() % 8); break;
      case 1: text.insert(at, kPieces[random() % kPieces.size()]); break;
      case 2: text[at] = static_cast<char>(random() % 256); break;
      default: {  // another number
        const std::size_t digit = text.find_first_of("0123456789", at);
        if (digit != std::string::npos) text.replace(digit, 1, kPieces[random() % kPieces.size()]);
      }
    }
  }
  return text;
}

TEST(ImportFuzz, EveryTruncationIsReadOrRefused) {
  for (const fs::path& file : files()) {
    const std::string text = read_text_file(file);
    for (std::size_t length = 0; length < text.size(); length += 1 + text.size() / 60)
      try_import(text.substr(0, length), file, length % 2 == 0);
  }
}

TEST(ImportFuzz, EveryMutationIsReadOrRefused) {
  std::mt19937_64 random(20240917);
  for (const fs::path& file : files()) {
    const std::string text = read_text_file(file);
    for (int round = 0; round < 150; ++round) try_import(mutated(text, random), file, round % 2 == 0);
  }
}

TEST(ImportFuzz, LargeAndNestedInputsEnd) {
  const fs::path file = "megatron/x.sh";
  std::string growing = "A=--x\n";
  for (int i = 0; i < 64; ++i) growing += "A=\"$A$A\"\n";  // doubling would be 2^64 letters
  try_import(growing + "--num-layers $A", file, true);
  try_import(std::string(1 << 20, '('), file, true);
  try_import("--num-layers $((" + std::string(100000, '(') + "1", file, true);
  try_import(std::string(100000, '{'), "deepspeed/x.json", true);
  try_import("a = " + std::string(100000, '['), "torchtitan/x.toml", true);
  std::string many;
  for (int i = 0; i < 20000; ++i) many += "--option-" + std::to_string(i) + " 1 ";
  try_import(many, file, true);
}

}  // namespace
}  // namespace reckon
