// The command line of reckon-rank. It is written by `reckon run` and `reckon calibrate`, so it is plain: no
// abbreviations.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace reckon {

struct RankOptions {
  std::string command;  // train, calibrate
  std::filesystem::path plan, out, resume;
  std::vector<std::filesystem::path> sampled_plans;  // calibrate: every --plan
  std::string backend = "threads";
  std::int64_t steps = -1;  // -1: as the plan says
  std::int64_t ranks = 0;   // calibrate: 0 = as the plan says, else all cores
  bool quick = false;
  bool untimed = false;                // train: without timing ops, to measure what that costs
  bool check_gradients = false;        // train: after the last step
  bool bar = false;                    // train: draw a bar that moves, for a terminal
  std::vector<std::string> overrides;  // key=value
};

/// Throws ConfigError saying what is wrong.
RankOptions parse_rank_options(int argc, const char* const* argv);

}  // namespace reckon
