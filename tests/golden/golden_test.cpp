// Whole commands with their whole output. A case is a file NAME.txt beside this one:
//
//   $ reckon plan tiny.yaml parallel.tensor=3
//   reckon: ...            what it prints, standard error first
//   [exit 3]               only when it is not 0
//
// Several commands may follow each other. The source folder is written as REPOSITORY. With RECKON_UPDATE_GOLDEN=1 in
// the environment the files are written anew; a change to them belongs in a commit that says why the output changed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "tests/support/run_command.h"

namespace reckon::test {
namespace {

namespace fs = std::filesystem;

const std::string kFolder = RECKON_SOURCE_DIR "/tests/golden";

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kFolder))
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string without_source_folder(std::string text) {
  const std::string folder = RECKON_SOURCE_DIR;
  for (std::size_t at; (at = text.find(folder)) != std::string::npos;) text.replace(at, folder.size(), "REPOSITORY");
  return text;
}

/// What the commands of a case print now, in the form of the case file.
std::string transcript(const std::string& expected) {
  std::istringstream lines(expected);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("$ ")) continue;
    const CommandResult result = run_command(line.substr(2), kFolder);
    text += line + "\n" + without_source_folder(result.err + result.out);
    if (result.exit_code != 0) text += "[exit " + std::to_string(result.exit_code) + "]\n";
  }
  return text;
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, CommandsPrintWhatTheyDid) {
  const std::string file = kFolder + "/" + GetParam() + ".txt";
  const std::string expected = read_file(file);
  const std::string now = transcript(expected);
  ASSERT_FALSE(now.empty()) << file << " has no line that starts with `$ `";
  if (std::getenv("RECKON_UPDATE_GOLDEN")) {
    std::ofstream(file, std::ios::binary) << now;
  } else {
    EXPECT_EQ(now, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, testing::ValuesIn(case_names()), [](const auto& name) {
  std::string text = name.param;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return text;
});

}  // namespace
}  // namespace reckon::test
