// The dependency rule, read from the include lines: link dependencies alone cannot enforce it, because every header is
// reachable from the repository root.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Folders = std::vector<std::string>;

/// Which folders of the project a folder may include.
const std::map<std::string, Folders> kMayInclude = {
    {"plan", {"plan"}},
    {"cost_model", {"plan", "cost_model"}},
    {"sim", {"plan", "sim"}},
    {"report", {"plan", "report"}},
    {"runtime/device", {"plan", "runtime/device"}},
    {"runtime/comm", {"plan", "runtime/device", "runtime/comm"}},
    {"runtime/quant", {"plan", "runtime/device", "runtime/quant"}},
    {"runtime/checkpoint", {"plan", "runtime/checkpoint"}},
    {"runtime/train",
     {"plan", "runtime/comm", "runtime/quant", "runtime/checkpoint", "runtime/device", "runtime/train"}},
    {"cli", {"plan", "cost_model", "sim", "report", "runtime", "cli"}},
    {"tests", {"plan", "cost_model", "sim", "report", "runtime", "tests"}},
};

/// Which folders may include the headers of an external package; tests may use what the code under test uses.
const std::vector<std::pair<std::string, Folders>> kExternal = {
    {"CLI/", {"cli"}},
    {"yaml-cpp/", {"plan"}},
    {"toml++/", {"plan/exchange"}},
    {"Eigen/", {"cost_model"}},
    {"nlohmann/", {"report", "runtime/checkpoint", "tests"}},
    {"mpi.h", {"runtime/comm", "tests"}},
    {"nccl.h", {"runtime/comm", "tests"}},
    {"cuda", {"runtime/device", "runtime/comm", "runtime/quant", "runtime/train", "tests"}},
    {"torch/torch.h", {}},  // 40 s a file; the parts that are needed have smaller headers
    {"torch/", {"runtime/train", "tests"}},
    {"ATen/", {"runtime/train", "tests"}},
    {"c10/", {"runtime/train", "tests"}},
    {"sentencepiece", {"runtime/train", "tests"}},
    {"gtest/", {"tests"}},
    {"benchmark/", {"tests"}},
};

/// The one place that may ask the preprocessor who compiles it.
const std::string kHostDeviceHeader = "runtime/device/host_device.h";

bool lies_in(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder + "/");
}

bool lies_in_any(const std::string& path, const Folders& folders) {
  return std::any_of(folders.begin(), folders.end(), [&](const auto& folder) { return lies_in(path, folder); });
}

const Folders* allowed_folders(const std::string& file) {
  for (const auto& [folder, allowed] : kMayInclude)
    if (lies_in(file, folder)) return &allowed;
  return nullptr;
}

/// What is wrong with one include line of `file` (paths from the repository root); empty = nothing.
std::string include_violation(const std::string& file, const std::string& header, bool quoted) {
  for (const auto& [prefix, folders] : kExternal) {
    if (!header.starts_with(prefix)) continue;
    return lies_in_any(file, folders) ? "" : file + " includes <" + header + ">, an external package of other folders";
  }
  if (!quoted) return "";
  const Folders* allowed = allowed_folders(file);
  if (allowed == nullptr) return file + " lies in no folder of the dependency rule";
  return lies_in_any(header, *allowed) ? "" : file + " includes " + header + ", which the dependency rule forbids";
}

std::vector<std::string> violations(const std::string& file, const std::string& text) {
  static const std::regex include(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"])re");
  static const std::regex condition(R"(^\s*#\s*(if|ifdef|ifndef|elif|else)\b)");
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_search(line, match, include)) {
      const std::string violation = include_violation(file, match[2], match[1] == "\"");
      if (!violation.empty()) found.push_back(violation);
    }
    if (file != kHostDeviceHeader && std::regex_search(line, condition))
      found.push_back(file + " has a preprocessor condition: " + line);
  }
  return found;
}

std::vector<fs::path> source_files() {
  static const std::set<std::string> kEndings = {".h", ".cpp", ".cu", ".cuh"};
  std::vector<fs::path> files;
  for (const char* folder : {"plan", "cost_model", "sim", "runtime", "report", "cli", "tests", "examples"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(RECKON_SOURCE_DIR) / folder))
      if (entry.is_regular_file() && kEndings.contains(entry.path().extension())) files.push_back(entry.path());
  return files;
}

TEST(Architecture, EveryIncludeFollowsTheDependencyRule) {
  const auto files = source_files();
  ASSERT_GT(files.size(), 30u) << "the source folders were not found";
  for (const fs::path& path : files) {
    std::ifstream stream(path);
    std::ostringstream text;
    text << stream.rdbuf();
    const std::string file = fs::relative(path, RECKON_SOURCE_DIR).generic_string();
    for (const std::string& violation : violations(file, text.str())) ADD_FAILURE() << violation;
  }
}

TEST(Architecture, ForbiddenEdgesAreSeen) {
  const std::vector<std::pair<std::string, std::string>> forbidden = {
      {"cost_model/a.cpp", "#include \"runtime/comm/communicator.h\""},
      {"plan/a.h", "#include \"report/table.h\""},
      {"sim/a.cpp", "  #  include \"cost_model/predict.h\""},
      {"runtime/quant/a.cpp", "#include \"runtime/comm/communicator.h\""},
      {"runtime/comm/a.cpp", "#include \"runtime/quant/quantize.h\""},
      {"runtime/comm/a.cpp", "#include \"runtime/checkpoint/checkpoint_reader.h\""},
      {"runtime/checkpoint/a.cpp", "#include \"runtime/comm/communicator.h\""},
      {"runtime/train/a.cpp", "#include \"report/profile_json.h\""},
      {"tests/cli/a.cpp", "#include \"cli/output.h\""},
      {"plan/a.cpp", "#include \"errors.h\""},
      {"cli/a.cpp", "#include <yaml-cpp/yaml.h>"},
      {"cli/a.cpp", "#include <nlohmann/json.hpp>"},
      {"runtime/train/a.cpp", "#include <torch/torch.h>"},
      {"runtime/comm/a.cpp", "#include <ATen/ATen.h>"},
      {"runtime/train/a.cpp", "#include <mpi.h>"},
      {"plan/a.cpp", "#ifdef RECKON_CUDA"},
      {"runtime/comm/a.cpp", " # if defined(X)"},
  };
  for (const auto& [file, line] : forbidden) EXPECT_EQ(violations(file, line).size(), 1u) << file << ": " << line;
}

TEST(Architecture, LegalEdgesPass) {
  EXPECT_TRUE(violations("cli/a.cpp", "#include \"runtime/train/train.h\"\n#include <CLI/CLI.hpp>").empty());
  EXPECT_TRUE(violations("plan/yaml_document.cpp", "#include <yaml-cpp/yaml.h>\n#include <vector>").empty());
  EXPECT_TRUE(violations("runtime/device/host_device.h", "#ifdef __CUDACC__\n#else\n#endif").empty());
  EXPECT_TRUE(violations("runtime/train/a.h", "#pragma once\n#include \"runtime/quant/quantize.h\"").empty());
}

}  // namespace
