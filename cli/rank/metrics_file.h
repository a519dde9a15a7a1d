// metrics.jsonl: one line a step, flushed at once so that it can be followed. A resumed run goes on where its
// checkpoint was taken: lines of steps that are made again are dropped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/train/train_run.h"

namespace reckon {

/// The whole lines of `file` up to step `step`; empty when there is no such file.
std::string metrics_until(const std::filesystem::path& file, std::int64_t step);

class MetricsFile {
 public:
  /// Starts with these lines. Throws RunError, here and in all calls, when the file cannot be written.
  MetricsFile(const std::filesystem::path& file, const std::string& earlier);
  void write(const StepMetrics& metrics);
  /// What was written is on the disk when it returns.
  void make_durable();

 private:
  void check() const;

  std::filesystem::path file_;
  std::ofstream out_;
};

}  // namespace reckon
