// metrics.jsonl of a run: one JSON object a step.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace reckon {

struct LoggedStep {
  std::int64_t step = 0;  // from 1
  double loss = 0, grad_norm = 0, learning_rate = 0;
  double seconds = 0, tokens_per_second = 0;
  std::int64_t memory_peak_bytes = 0;
};

/// Throws ConfigError with line and key. A last line that was cut off when the run ended is left out.
std::vector<LoggedStep> read_metrics(const std::filesystem::path& file);

}  // namespace reckon
