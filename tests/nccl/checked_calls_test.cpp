// Every CUDA and NCCL call of the runtime goes through a check that names it, or says why not ("unchecked: ...").
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

namespace reckon {
namespace {

namespace fs = std::filesystem;

/// Calls without a check in a source text. A statement with check(...) around it is checked.
std::vector<std::string> unchecked(const std::string& text) {
  static const std::regex call(R"(\b(cuda|nccl)[A-Z]\w*\()");
  static const std::regex harmless(R"((cuda|nccl)Get(ErrorString|ErrorName|LastError)\()");
  std::vector<std::string> found;
  std::istringstream lines(text);
  std::string statement;
  for (std::string line; std::getline(lines, line);) {
    const std::string code = line.substr(0, line.find("//"));
    statement += code + " ";
    const bool ends = code.find(';') != std::string::npos || code.find('{') != std::string::npos;
    const bool excused = line.find("unchecked:") != std::string::npos;
    if (!ends) continue;
    if (!excused && std::regex_search(statement, call) && !std::regex_search(statement, harmless) &&
        statement.find("check") == std::string::npos)
      found.push_back(statement);
    statement.clear();
  }
  return found;
}

TEST(CheckedCalls, AllCallsOfTheRuntimeAre) {
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(RECKON_SOURCE_DIR) / "runtime")) {
    const std::string ending = entry.path().extension();
    if (ending != ".cpp" && ending != ".cu") continue;
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    ++files;
    for (const std::string& statement : unchecked(text.str())) ADD_FAILURE() << entry.path() << ": " << statement;
  }
  EXPECT_GT(files, 30) << "the source folder was not found";
}

TEST(CheckedCalls, AForgottenCheckIsSeen) {
  EXPECT_EQ(unchecked("  cudaFree(memory);\n").size(), 1u);
  EXPECT_EQ(unchecked("  const auto state =\n      ncclCommFinalize(handle);\n").size(), 1u);
  EXPECT_TRUE(unchecked("  check_cuda(cudaMalloc(&a, 1),\n   \"cudaMalloc\");\n").empty());
  EXPECT_TRUE(unchecked("  cudaFree(memory);  // unchecked: at the end\n").empty());
}

}  // namespace
}  // namespace reckon
