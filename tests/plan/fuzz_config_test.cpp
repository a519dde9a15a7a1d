// Mutated configuration files: whatever stands in them, the loader answers with a value or a ConfigError, soon.
// RECKON_FUZZ_SECONDS sets how long to mutate (default 2 s a test); seeds are fixed and printed on failure.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <random>

#include "plan/load_plan.h"
#include "plan/plan_schema.h"
#include "plan/spec_yaml.h"
#include "plan/yaml_document.h"

namespace reckon {
namespace {

using Random = std::mt19937_64;

const ConfigPaths kPaths{std::filesystem::path(RECKON_SOURCE_DIR) / "configs", {}};

double fuzz_seconds() {
  const char* text = std::getenv("RECKON_FUZZ_SECONDS");
  return text == nullptr ? 2.0 : std::stod(text);
}

const std::vector<std::string> kTokens = {":",
                                          " ",
                                          "\n",
                                          "\n  ",
                                          "- ",
                                          "[",
                                          "]",
                                          "{",
                                          "}",
                                          ",",
                                          "#",
                                          "&a ",
                                          "*a",
                                          "!!int ",
                                          "!x ",
                                          "|\n",
                                          ">\n",
                                          "\"",
                                          "'",
                                          "\\",
                                          "\t",
                                          "%YAML 1.2\n",
                                          "---\n",
                                          "...\n",
                                          "~",
                                          "null",
                                          "auto",
                                          "true",
                                          "1e400",
                                          "-1",
                                          "0",
                                          "9223372036854775807",
                                          "9223372036854775808",
                                          "1e18",
                                          ".nan",
                                          ".inf",
                                          "80GiB",
                                          "1e30 GiB",
                                          "5 us",
                                          "\xff",
                                          "\xc3",
                                          std::string(1, '\0'),
                                          "\xef\xbb\xbf",
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
                                          std::string(300, '['),
                                          std::string(300, '{'),
                                          std::string(5000, 'x')};

std::string mutated(std::string text, Random& random) {
  const int times = 1 + static_cast<int>(random() % 4);
  for (int i = 0; i < times; ++i) {
    const std::size_t at = text.empty() ? 0 : random() % text.size();
    const std::size_t length = std::min<std::size_t>(text.size() - at, random() % 24);
    switch (random() % 6) {
      case 0: text.insert(at, kTokens[random() % kTokens.size()]); break;
      case 1: text.erase(at, length); break;
      case 2: text.replace(at, length, kTokens[random() % kTokens.size()]); break;
      case 3: text.insert(random() % (text.size() + 1), text.substr(at, random() % 80)); break;
      case 4:
        if (!text.empty()) text[at] = static_cast<char>(random());
        break;
      default: text.resize(at); break;
    }
  }
  return text;
}

/// Calls `read` with mutated texts until the time is over. Anything but a value or a ConfigError with sentences fails.
template <class Read>
void fuzz(const std::vector<std::string>& texts, Read read) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(fuzz_seconds());
  int accepted = 0, refused = 0;
  for (std::uint64_t seed = 1; std::chrono::steady_clock::now() < end; ++seed) {
    Random random(seed);
    const std::string text = mutated(texts[random() % texts.size()], random);
    const auto start = std::chrono::steady_clock::now();
    try {
      read(text, random);
      ++accepted;
    } catch (const ConfigError& error) {
      ++refused;
      for (const Diagnostic& one : error.diagnostics()) EXPECT_FALSE(one.message.empty()) << "seed " << seed;
    } catch (const std::exception& error) {
      ADD_FAILURE() << "seed " << seed << ": " << std::string(error.what()).substr(0, 300) << "\n"
                    << text.substr(0, 2000);
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5)) << "seed " << seed;
  }
  EXPECT_GT(accepted, 0);
  EXPECT_GT(refused, 0);
}

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator(kPaths.configs / folder))
    texts.push_back(read_text_file(entry.path()));
  return texts;
}

TEST(FuzzConfig, PlanFiles) {
  fuzz(files_of("plans"), [](const std::string& text, Random&) {
    const Plan plan = parse_plan(text, "p.yaml", {}, kPaths);
    if (check_plan(plan).empty()) plan_warnings(plan);
    const std::string written = write_plan(plan);
    EXPECT_EQ(write_plan(parse_plan(written, "q.yaml", {}, kPaths)), written) << text.substr(0, 2000);
  });
}

TEST(FuzzConfig, HardwareFiles) {
  fuzz(files_of("hardware"), [](const std::string& text, Random&) {
    const std::string written = write_hardware(read_hardware(parse_yaml(text, "h.yaml"), "h.yaml"));
    EXPECT_EQ(write_hardware(read_hardware(parse_yaml(written, "h.yaml"), "h.yaml")), written) << text.substr(0, 2000);
  });
}

TEST(FuzzConfig, ModelFiles) {
  fuzz(files_of("models"), [](const std::string& text, Random&) { read_model(parse_yaml(text, "m.yaml"), "m.yaml"); });
}

TEST(FuzzConfig, Overrides) {
  std::vector<std::string> texts;
  for (const PlanKey& key : plan_keys()) {
    if (key.set != nullptr) texts.push_back(key.path + "=" + write_yaml(key.get(Plan{})));
  }
  texts.insert(texts.end(), {"model.layers=4", "hardware.device.memory=40 GiB", "activations.classes.gate=int4",
                             "parallel={data: 2, tensor: 4}"});
  fuzz(texts, [](const std::string& text, Random&) {
    parse_plan("model: llama2-7b\nhardware: h100-80gb-8x\nbatch: {sequence_length: 4096, global_batch: 8}\n", "p.yaml",
               {text}, kPaths);
  });
}

}  // namespace
}  // namespace reckon
