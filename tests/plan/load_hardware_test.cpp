#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>

#include "plan/load_plan.h"
#include "plan/spec_yaml.h"
#include "tests/support/temporary_folder.h"

namespace reckon {
namespace {

const ConfigPaths kPaths{std::filesystem::path(RECKON_SOURCE_DIR) / "configs", "/nonexistent/local.yaml"};

constexpr const char* kSmallest = R"(name: box
device: {name: D, peak: {bf16: 100 TFLOP/s}, memory: 10 GiB, memory_bandwidth: 1 TB/s}
devices_per_node: 2
intra_node: {bandwidth: 10 GB/s, latency: 1 us}
inter_node: {bandwidth: 1 GB/s, latency: 2 us}
)";

HardwareSpec read(const std::string& yaml) {
  return read_hardware(parse_yaml(yaml, "h.yaml"), "h.yaml");
}

std::vector<Diagnostic> errors_of(const std::string& yaml) {
  try {
    read(yaml);
  } catch (const ConfigError& error) {
    return error.diagnostics();
  }
  return {};
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(LoadHardware, EveryShippedFileLoadsUnderItsOwnName) {
  const std::vector<std::string> names = known_hardware(kPaths);
  ASSERT_GE(names.size(), 21u);
  for (const std::string& name : names) {
    const HardwareSpec hardware = load_hardware(name, kPaths);
    EXPECT_EQ(hardware.name, name);
    EXPECT_FALSE(hardware.source.empty()) << name;
    EXPECT_TRUE(hardware.provenance.contains("device.peak")) << name;
    EXPECT_TRUE(hardware.provenance.contains("device.memory")) << name;
    EXPECT_TRUE(hardware.provenance.contains("inter_node.bandwidth")) << name;
    EXPECT_EQ(hardware.provenance.contains("time.collectives"), !hardware.time.collectives.empty()) << name;
  }
}

TEST(LoadHardware, EveryAliasBelongsToOneFile) {
  std::map<std::string, std::string> owners;
  for (const std::string& name : known_hardware(kPaths)) {
    for (std::string alias : load_hardware(name, kPaths).aliases) {
      EXPECT_EQ(load_hardware(alias, kPaths).name, name) << alias;
      std::erase_if(alias, [](char c) { return c == '-' || c == ' ' || c == '_'; });
      for (char& c : alias) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      const auto [owner, is_new] = owners.emplace(alias, name);
      EXPECT_TRUE(is_new || owner->second == name) << alias << " of " << name << " and " << owner->second;
    }
  }
}

TEST(LoadHardware, NamesOfPublicResultTablesAreKnown) {
  for (const char* alias :
       {"H100", "A100", "A100 40", "A100 80", "V100", "V100 16", "V100 32", "A800", "B200", "GB200", "GB300", "B300",
        "MI300", "MI325X", "MI355", "MI355X", "RTX 4090", "rtx-4090", "RTX A6000"}) {
    EXPECT_NO_THROW(load_hardware(alias, kPaths)) << alias;
  }
  EXPECT_EQ(load_hardware("a100 40", kPaths).name, "a100-40gb-8x");
  EXPECT_EQ(load_hardware("H100", kPaths).device.memory.value, 84932978278);  // 79.1 * 2^30 = 84932978278.4
}

TEST(LoadHardware, EveryGpuOfTheReferenceListHasAFile) {
  const char* shared = std::getenv("RECKON_SHARED_DATA");
  if (shared == nullptr) GTEST_SKIP() << "RECKON_SHARED_DATA does not name the folder with gpus.csv";
  std::filesystem::path file = std::filesystem::path(shared) / "gpus.csv";
  if (!std::filesystem::exists(file)) file = std::filesystem::path(shared) / "reference" / "gpus.csv";
  if (!std::filesystem::exists(file)) file = std::filesystem::path(shared).parent_path() / "reference" / "gpus.csv";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "there is no gpus.csv under RECKON_SHARED_DATA";
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  int rows = 0;
  while (std::getline(stream, line)) {
    std::vector<std::string> cells(1);
    for (const char c : line) {
      if (c == ',') {
        cells.emplace_back();
      } else {
        cells.back() += c;
      }
    }
    const HardwareSpec hardware = load_hardware(cells[0], kPaths);
    const auto peak = [&](NumberFormat format) {
      return hardware.device.peak.contains(format) ? hardware.device.peak.at(format).value / 1e12 : 0.0;
    };
    const auto number = [&](std::size_t column) { return cells[column].empty() ? 0.0 : std::stod(cells[column]); };
    EXPECT_NEAR(peak(NumberFormat::bf16), number(2), 1e-6) << cells[0];
    EXPECT_NEAR(peak(NumberFormat::fp16), number(3), 1e-6) << cells[0];
    EXPECT_NEAR(peak(NumberFormat::fp8_e4m3), number(4), 1e-6) << cells[0];
    EXPECT_NEAR(peak(NumberFormat::int8), number(5), 1e-6) << cells[0];
    EXPECT_NEAR(static_cast<double>(hardware.device.memory.value) / kGiB, number(6), 0.51) << cells[0];
    EXPECT_EQ(hardware.device.memory_bandwidth.value / 1e9, number(7)) << cells[0];
    EXPECT_EQ(hardware.device.multiprocessors, static_cast<int>(number(10))) << cells[0];
    ++rows;
  }
  EXPECT_GE(rows, 21);
}

TEST(LoadHardware, WritingAndReadingGivesTheSameText) {
  for (const std::string& name : known_hardware(kPaths)) {
    const std::string text = write_hardware(load_hardware(name, kPaths));
    EXPECT_EQ(write_hardware(read(text)), text) << name;
  }
}

TEST(LoadHardware, ACalibratedSpecSurvivesARoundTripExactly) {
  HardwareSpec spec = read(kSmallest);
  spec.device.is_cpu = true;
  spec.cores = 2;
  spec.intra_node.switched = false;
  spec.time.gemm[Pass::weight_gradient] = {1.0 / 3.0, 0.1, Seconds(1e-6 / 7.0), 0.04, Provenance::calibrated};
  spec.time.launch = Seconds(1.0 / 3e6);
  spec.time.global_factor = 1.0321;
  spec.time.gemm_samples = {{2, 128, 256, 64, Pass::input_gradient, NumberFormat::fp32, Seconds(2.0 / 3e5)}};
  spec.time.op_samples = {{"attention_norm", "rows 128, width 64: \"odd\" #text", Seconds(1e-5 / 3), Seconds(2e-5 / 3),
                           NumberFormat::fp32}};
  spec.time.collectives = {{Collective::all_to_all, 2, 4, 3, Seconds(1e-5 / 3), 1e-8 / 3, BytesPerSecond(1e9 / 7), 0.03,
                            Provenance::interpolated}};
  spec.provenance = {{"host", "a: b"}, {"date", "2024-01-01T00:00:00Z"}, {"empty", ""}, {"lines", "a\nb"}};
  const HardwareSpec back = read(write_hardware(spec));
  EXPECT_TRUE(back.device.is_cpu);
  EXPECT_FALSE(back.intra_node.switched);
  EXPECT_EQ(back.time.gemm.at(Pass::weight_gradient).flops_factor, 1.0 / 3.0);
  EXPECT_EQ(back.time.gemm.at(Pass::weight_gradient).constant, Seconds(1e-6 / 7.0));
  EXPECT_EQ(back.time.launch, spec.time.launch);
  EXPECT_EQ(back.time.gemm_samples.at(0).seconds, Seconds(2.0 / 3e5));
  EXPECT_EQ(back.time.gemm_samples.at(0).pass, Pass::input_gradient);
  EXPECT_EQ(back.time.op_samples.at(0).shape, spec.time.op_samples[0].shape);
  EXPECT_EQ(back.time.op_samples.at(0).format, NumberFormat::fp32);
  EXPECT_EQ(back.time.collectives.at(0).gamma_seconds_per_sqrt_byte, 1e-8 / 3);
  EXPECT_EQ(back.time.collectives.at(0).siblings, 3);
  EXPECT_EQ(back.provenance, spec.provenance);
  EXPECT_EQ(write_hardware(back), write_hardware(spec));
}

TEST(LoadHardware, AMissingUnitAnUnknownKeyAndABadNumberAreAllReported) {
  std::string yaml = replaced(kSmallest, "memory: 10 GiB", "memory: 10");
  yaml = replaced(yaml, "devices_per_node: 2", "devices_per_node: 0");
  yaml = replaced(yaml, "latency: 2 us", "latancy: 2 us");
  yaml = replaced(yaml, "bf16: 100", "bf61: 100");
  const std::vector<Diagnostic> errors = errors_of(yaml);
  ASSERT_EQ(errors.size(), 5u);
  EXPECT_EQ(to_string(errors[0]), "h.yaml:2:26: unknown key 'bf61'; did you mean 'bf16'?");
  EXPECT_NE(errors[1].message.find("unit is missing"), std::string::npos);
  EXPECT_EQ(errors[1].key, "device.memory");
  EXPECT_EQ(errors[2].message, "'devices_per_node' must be above 0");
  EXPECT_EQ(errors[3].message, "the key 'inter_node.latency' is missing");
  EXPECT_NE(errors[4].message.find("did you mean 'latency'"), std::string::npos);
}

TEST(LoadHardware, AnUnknownNameSuggestsTheNearest) {
  const auto message = [](const std::string& name) -> std::string {
    try {
      load_hardware(name, kPaths);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_NE(message("h100-80gb-8").find("did you mean 'h100-80gb-8x'"), std::string::npos);
  EXPECT_NE(message("quantum").find("known: "), std::string::npos);
  EXPECT_NE(message("./nowhere.yaml").find("no such file"), std::string::npos);
  EXPECT_NE(message("").find("there is no hardware"), std::string::npos);
}

TEST(LoadHardware, LocalSaysHowToCalibrate) {
  try {
    load_hardware("local", kPaths);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("reckon calibrate"), std::string::npos);
  }
  const TemporaryFolder folder;
  EXPECT_EQ(load_hardware("local", {kPaths.configs, folder.write("local.yaml", kSmallest)}).name, "box");
}

}  // namespace
}  // namespace reckon
