// `reckon plan`: the closed-form prediction of one plan.
#pragma once

#include <string>
#include <vector>

#include "cli/output.h"
#include "plan/errors.h"

namespace reckon {

struct PlanOptions {
  std::string plan;                    // a path, or a name in configs/plans
  std::vector<std::string> overrides;  // "parallel.tensor=4", the last one wins
  std::string html;                    // file for the HTML report; empty = none
};

/// does_not_fit when the plan does not, after the whole record was printed.
ExitCode plan_command(const PlanOptions& options, const Output& output);

}  // namespace reckon
