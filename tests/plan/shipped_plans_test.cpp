// Every plan of configs/plans loads, breaks no rule, and has no option without effect.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "plan/load_plan.h"
#include "tests/support/temporary_folder.h"

namespace reckon {
namespace {

/// A calibrated CPU machine stands in for `hardware: local`.
constexpr std::string_view kLocal = R"(name: local
device: {name: cpu, peak: {fp32: 100 GFLOP/s}, memory: 4 GiB, memory_bandwidth: 20 GB/s, is_cpu: true}
devices_per_node: 1
intra_node: {bandwidth: 5 GB/s, latency: 1 us}
inter_node: {bandwidth: 5 GB/s, latency: 1 us}
cores: 2
)";

ConfigPaths paths(const TemporaryFolder& folder) {
  return {std::filesystem::path(RECKON_SOURCE_DIR) / "configs", folder.write("local.yaml", kLocal)};
}

std::vector<std::filesystem::path> plan_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(RECKON_SOURCE_DIR) / "configs/plans")) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(ShippedPlans, LoadAndAreLegal) {
  const TemporaryFolder folder;
  const ConfigPaths configs = paths(folder);
  const std::vector<std::filesystem::path> files = plan_files();
  EXPECT_GE(files.size(), 12u);
  for (const std::filesystem::path& file : files) {
    const Plan plan = load_plan(file, {}, configs);
    for (const Diagnostic& broken : check_plan(plan)) ADD_FAILURE() << file.filename() << ": " << broken.message;
    for (const std::string& warning : plan_warnings(plan)) ADD_FAILURE() << file.filename() << ": " << warning;
  }
}

TEST(ShippedPlans, ReadBackAfterWriting) {
  const TemporaryFolder folder;
  const ConfigPaths configs = paths(folder);
  for (const std::filesystem::path& file : plan_files()) {
    const std::string text = write_plan(load_plan(file, {}, configs));
    EXPECT_EQ(write_plan(parse_plan(text, "resolved.yaml", {}, {})), text) << file.filename();
  }
}

TEST(ShippedPlans, ThePapersSetupsHaveThePublishedShape) {
  const TemporaryFolder folder;
  const ConfigPaths configs = paths(folder);
  const auto load = [&](const std::string& name) { return load_plan(configs.configs / "plans" / name, {}, configs); };
  // AGoQ: 8 nodes x 8 A6000, PP4 x TP8 x DP2, 8 micro-batches a replica.
  for (const char* name : {"agoq-megatron-32k.yaml", "agoq-zero1-32k.yaml", "agoq-agoq-32k.yaml"}) {
    EXPECT_EQ(load(name).world_size(), 64) << name;
    EXPECT_EQ(load(name).micro_batches(), 8) << name;
  }
  // HSAP: every topology has 8 devices; the intra group fills a node.
  for (const char* name : {"hsap-8x1-64k.yaml", "hsap-4x2-64k.yaml", "hsap-2x4-64k.yaml", "hsap-1x8-64k.yaml"}) {
    EXPECT_EQ(load(name).world_size(), 8) << name;
    EXPECT_EQ(load(name).parallel.ulysses, load(name).hardware.devices_per_node) << name;
  }
  EXPECT_EQ(load("llama3.1-405b-16384xh100.yaml").world_size(), 16384);
}

}  // namespace
}  // namespace reckon
