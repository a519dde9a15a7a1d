// Mutated configuration files and overrides: a value or a ConfigError, and what is read is written so that it reads
// back.
#include <gtest/gtest.h>

#include <filesystem>

#include "plan/load_plan.h"
#include "plan/plan_schema.h"
#include "plan/spec_yaml.h"
#include "plan/yaml_document.h"
#include "tests/support/mutate.h"

namespace reckon {
namespace {

const ConfigPaths kPaths{std::filesystem::path(RECKON_SOURCE_DIR) / "configs", {}};

const Mutator kYaml({"\n  ",
                     "- ",
                     "&a ",
                     "*a",
                     "!!int ",
                     "!x ",
                     "|\n",
                     ">\n",
                     "%YAML 1.2\n",
                     "---\n",
                     "...\n",
                     "~",
                     "80GiB",
                     "1e30 GiB",
                     "5 us",
                     "<<: ",
                     "? ",
                     "model: ",
                     "base: ",
                     "batch: ",
                     "parallel: ",
                     "sequence_length: ",
                     "layers_per_stage: [",
                     "classes: {gate: ",
                     "tensor: 8",
                     "method: agoq",
                     "hardware: H100",
                     "model: llama2-7b",
                     "method: ",
                     "slow_ranks: {1: 2}",
                     "\"\\e[31m\"",
                     std::string(300, '{')});

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(kPaths.configs / folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> texts;
  for (const auto& file : files) texts.push_back(read_text_file(file));
  return texts;
}

TEST(FuzzConfig, PlanFiles) {
  fuzz(files_of("plans"), kYaml, 1500, [](const std::string& text, Random&) {
    const Plan plan = parse_plan(text, "p.yaml", {}, kPaths);
    if (check_plan(plan).empty()) plan_warnings(plan);
    const std::string written = write_plan(plan);
    EXPECT_EQ(write_plan(parse_plan(written, "q.yaml", {}, kPaths)), written) << text.substr(0, 2000);
  });
}

TEST(FuzzConfig, HardwareFiles) {
  fuzz(files_of("hardware"), kYaml, 2000, [](const std::string& text, Random&) {
    const std::string written = write_hardware(read_hardware(parse_yaml(text, "h.yaml"), "h.yaml"));
    EXPECT_EQ(write_hardware(read_hardware(parse_yaml(written, "h.yaml"), "h.yaml")), written) << text.substr(0, 2000);
  });
}

TEST(FuzzConfig, ModelFiles) {
  fuzz(files_of("models"), kYaml, 3000,
       [](const std::string& text, Random&) { read_model(parse_yaml(text, "m.yaml"), "m.yaml"); });
}

TEST(FuzzConfig, Overrides) {
  std::vector<std::string> texts;
  for (const PlanKey& key : plan_keys()) {
    if (key.set != nullptr) texts.push_back(key.path + "=" + write_yaml(key.get(Plan{})));
  }
  texts.insert(texts.end(), {"model.layers=4", "hardware.device.memory=40 GiB", "activations.classes.gate=int4",
                             "parallel={data: 2, tensor: 4}"});
  fuzz(texts, kYaml, 1500, [](const std::string& text, Random&) {
    parse_plan("model: llama2-7b\nhardware: h100-80gb-8x\nbatch: {sequence_length: 4096, global_batch: 8}\n", "p.yaml",
               {text}, kPaths);
  });
}

}  // namespace
}  // namespace reckon
