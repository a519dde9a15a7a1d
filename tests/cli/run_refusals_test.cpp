// What `run` refuses is refused before this machine is measured for it, which takes a while.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/run_command.h"

namespace reckon::test {
namespace {

struct Refusal {
  const char* name;
  const char* arguments;
  const char* names;  // what the message names
};

std::ostream& operator<<(std::ostream& out, const Refusal& refusal) {
  return out << refusal.name;
}

class RunRefusals : public testing::TestWithParam<Refusal> {};

TEST_P(RunRefusals, ComeBeforeTheCalibration) {
  const TemporaryFolder folder;
  const CommandResult result = run_command(
      "export XDG_CACHE_HOME=" + folder.path() +
          "/cache; reckon run " RECKON_SOURCE_DIR "/tests/golden/train.yaml hardware=local " + GetParam().arguments,
      folder.path());
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_NE(result.err.find(GetParam().names), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("calibrating"), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("stand-in"), std::string::npos) << result.err;
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/runs"));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
    EXPECT_FALSE(entry.is_regular_file()) << entry.path();  // nothing is left behind
}

INSTANTIATE_TEST_SUITE_P(Cli, RunRefusals,
                         testing::Values(Refusal{"UnknownKey", "batch.micro_bach=2", "micro_batch"},
                                         Refusal{"KeyThatIsNotExecuted", "kernels.dropout=true", "no dropout"},
                                         Refusal{"ModelThatIsNotExecuted", "model=mixtral-8x7b", "mixture of experts"},
                                         Refusal{"MissingData", "train.data=none.txt", "none.txt"},
                                         Refusal{"MissingCheckpoint", "--resume none", "none"},
                                         Refusal{"Backend", "--backend nccl", "NCCL"}),
                         [](const auto& refusal) { return refusal.param.name; });

}  // namespace
}  // namespace reckon::test
