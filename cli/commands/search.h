// `reckon search`: every legal plan around a plan's model, hardware and batch, ranked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/output.h"
#include "plan/errors.h"

namespace reckon {

struct SearchCommand {
  std::string plan;
  std::vector<std::string> overrides;
  std::int64_t devices = 0;        // 0 = as many as the plan has
  std::vector<std::string> fixed;  // keys that the search leaves alone
  int top = 10;
  int threads = 0;             // 0 = one for each core
  std::string time_limit;      // "30s"; empty = the whole space
  double limit_seconds = 0.0;  // the same as a number; 0 = the whole space
  std::string html;            // file for the HTML report; empty = none
};

/// does_not_fit when no legal plan fits.
ExitCode search_command(const SearchCommand& options, const Output& output);

}  // namespace reckon
