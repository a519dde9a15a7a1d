// Mutated results of runs: profiles, metrics and errors are read, or refused by a ConfigError; what is read can be
// written and shown.
#include <gtest/gtest.h>

#include "report/error_json.h"
#include "report/profile_json.h"
#include "report/read_metrics.h"
#include "report/report_page.h"
#include "report/write_console.h"
#include "tests/support/mutate.h"
#include "tests/support/temporary_folder.h"

namespace reckon {
namespace {

const ConfigPaths kPaths{std::filesystem::path(RECKON_SOURCE_DIR) / "configs", {}};

StepProfile example() {
  StepProfile profile;
  profile.source = ProfileSource::measured;
  profile.plan =
      parse_plan("model: llama-tiny\nhardware: a100-80gb-8x\nbatch: {sequence_length: 64, global_batch: 8}\n",
                 "example", {}, kPaths);
  profile.world_size = 2;
  profile.step.seconds = Seconds(1.5);
  profile.time = {{"forward.qkv", Seconds(1.0), Seconds(1.0), {}}};
  profile.stages.resize(2);
  profile.traffic = {{"data", "all_reduce", "fp32", 3, 4096}};
  profile.assumptions = {"none"};
  return profile;
}

TEST(FuzzProfile, Profiles) {
  const TemporaryFolder folder;
  const Mutator mutator({"{\"a\": ", "1e999", "-0", "\"fits\": ", "\"\\u001b[31m\"", "\"</script>\""});
  fuzz({profile_json(example())}, mutator, 1500, [&](const std::string& text, Random&) {
    const StepProfile profile = read_profile(folder.write("measured.json", text), kPaths);
    const std::string written = profile_json(profile);
    EXPECT_EQ(profile_json(read_profile(folder.write("again.json", written), kPaths)), written);
    plan_summary(profile);
    Report report;
    report.profiles = {profile};
    report_page(report);
  });
}

TEST(FuzzProfile, Metrics) {
  const TemporaryFolder folder;
  const std::string line =
      R"("loss": 5.5, "grad_norm": null, "learning_rate": 1e-4, "seconds": 0.5, "cpu_seconds": 0.4, )"
      R"("tokens_per_second": 100, "memory_peak_bytes": 4096})"
      "\n";
  fuzz({"{\"step\": 1, " + line + "{\"step\": 2, " + line}, Mutator(), 3000,
       [&](const std::string& text, Random&) { read_metrics(folder.write("metrics.jsonl", text)); });
  EXPECT_THROW(read_metrics(folder.write("deep.jsonl", "{\"step\": " + std::string(1000000, '[') + "\n\n")),
               ConfigError);
  EXPECT_THROW(read_metrics(folder.write(
                   "deep.jsonl", "{\"step\": " + std::string(1000000, '[') + std::string(1000000, ']') + "}\n\n")),
               ConfigError);
  EXPECT_THROW(read_metrics("/dev/zero"), ConfigError);
}

TEST(FuzzProfile, Errors) {
  const TemporaryFolder folder;
  const std::string good = error_json(ExitCode::broken_rule, {{"a rule is broken", "p.yaml", 3, 4, "parallel.tensor"}});
  fuzz({good}, Mutator(), 3000, [&](const std::string& text, Random&) {
    const Error error = read_error(folder.write("error.json", text));
    error_json(error.exit_code(), error.diagnostics());
  });
}

}  // namespace
}  // namespace reckon
