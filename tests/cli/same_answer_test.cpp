// One core or all of them, a processor with fused multiply-add or without: the commands print the same documents.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/run_command.h"

namespace reckon::test {
namespace {

nlohmann::json document(const std::string& line) {
  auto json = nlohmann::json::parse(run_command(line + " --json").out, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << line;
  for (const char* key : {"seconds", "plans_per_second"})  // how long a search took
    if (json.is_object() && json["schema"] == "reckon.search/1") json.erase(key);
  return json;
}

TEST(SameAnswer, OnOneCoreAndOnAll) {
  if (run_command("taskset -c 0 true").exit_code != 0) GTEST_SKIP() << "processes cannot be bound to a core here";
  for (const std::string line :
       {"reckon plan llama3.1-405b-16384xh100", "reckon simulate agoq-agoq-32k sim.jitter=0.1",
        "reckon search llama3.1-8b-h100-node --devices 8", "reckon explain llama3.1-8b-h100-node"})
    EXPECT_EQ(document(line), document("taskset -c 0 " + line)) << line;
}

/// glibc has two versions of exp, log and pow, chosen by processor; their last digits may differ.
TEST(SameAnswer, WithAndWithoutFusedMultiplyAdd) {
  const std::string without = "GLIBC_TUNABLES=glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2 ";
  for (const auto& entry : std::filesystem::directory_iterator(RECKON_SOURCE_DIR "/configs/plans")) {
    const std::string name = entry.path().stem().string();
    if (name.starts_with("cpu-")) continue;  // for a machine that is to be calibrated first
    for (const std::string command : {"reckon plan ", "reckon simulate "})
      EXPECT_EQ(document(command + name), document(without + command + name)) << command << name;
  }
}

}  // namespace
}  // namespace reckon::test
