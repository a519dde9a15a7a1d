#include "runtime/comm/launch_place.h"

#include <gtest/gtest.h>

#include <map>

#include "plan/errors.h"

namespace reckon {
namespace {

Environment environment(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto entry = variables.find(name);
    if (entry == variables.end()) return {};
    return entry->second;
  };
}

std::string refusal(const std::map<std::string, std::string>& variables) {
  try {
    (void)launch_place(environment(variables));
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(LaunchPlace, ReadsWhatTorchrunSets) {
  const LaunchPlace place = launch_place(environment(
      {{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "node3"}, {"MASTER_PORT", "29500"}}));
  EXPECT_EQ(place.rank, 5);
  EXPECT_EQ(place.ranks, 8);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.address, "node3");
  EXPECT_EQ(place.port, 29500);
}

TEST(LaunchPlace, ReadsSlurmWithoutAnythingElse) {
  const LaunchPlace place = launch_place(environment({{"SLURM_PROCID", "9"},
                                                      {"SLURM_NTASKS", "16"},
                                                      {"SLURM_LOCALID", "1"},
                                                      {"SLURM_STEP_NODELIST", "gpu[07-08,11]"},
                                                      {"SLURM_JOB_ID", "123456"},
                                                      {"SLURM_STEP_ID", "2"}}));
  EXPECT_EQ(place.rank, 9);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.address, "gpu07");
  EXPECT_EQ(place.port, 20000 + 3456 + 2);  // 123456 mod 10000, and the step
}

TEST(LaunchPlace, ExplicitVariablesWinOverSlurms) {
  const LaunchPlace place = launch_place(environment({{"SLURM_PROCID", "9"},
                                                      {"SLURM_NTASKS", "16"},
                                                      {"SLURM_LOCALID", "1"},
                                                      {"SLURM_STEP_NODELIST", "gpu07"},
                                                      {"SLURM_JOB_ID", "1"},
                                                      {"MASTER_ADDR", "10.0.0.7"},
                                                      {"MASTER_PORT", "4000"}}));
  EXPECT_EQ(place.address, "10.0.0.7");
  EXPECT_EQ(place.port, 4000);
}

TEST(LaunchPlace, WithoutALauncherThereIsOneRank) {
  const LaunchPlace place = launch_place(environment({}));
  EXPECT_EQ(place.rank, 0);
  EXPECT_EQ(place.ranks, 1);
  EXPECT_EQ(place.port, 0);
}

TEST(LaunchPlace, NamesTheVariableThatIsMissingOrWrong) {
  const std::map<std::string, std::string> good{
      {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "4000"}};
  EXPECT_EQ(refusal(good), "");
  for (const std::string missing : {"WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"}) {
    auto variables = good;
    variables.erase(missing);
    EXPECT_NE(refusal(variables).find(missing + " is not set"), std::string::npos) << refusal(variables);
  }
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"RANK", "2"}, {"RANK", "-1"}, {"RANK", "one"}, {"RANK", ""}, {"WORLD_SIZE", "0"}, {"MASTER_PORT", "70000"}};
  for (const auto& [variable, value] : wrong) {
    auto variables = good;
    variables[variable] = value;
    EXPECT_NE(refusal(variables).find(variable + " is"), std::string::npos) << variable << "=" << value;
  }
  auto without_rank = good;
  without_rank.erase("RANK");
  EXPECT_NE(refusal(without_rank).find("RANK is not set"), std::string::npos);
}

TEST(LaunchPlace, FindsTheFirstHostOfSlurmsLists) {
  EXPECT_EQ(first_slurm_host("node1"), "node1");
  EXPECT_EQ(first_slurm_host("node1,node2"), "node1");
  EXPECT_EQ(first_slurm_host("node[007-012,31],big3"), "node007");
  EXPECT_EQ(first_slurm_host("a-b[3]"), "a-b3");
  EXPECT_EQ(first_slurm_host("login,node[1-2]"), "login");
}

}  // namespace
}  // namespace reckon
