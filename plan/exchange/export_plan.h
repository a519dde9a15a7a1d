// A plan as the arguments or file of another tool, and what that tool cannot be told. Importing the result gives the
// plan again, as far as the tool's words reach.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace reckon {

struct ForeignFile {
  std::string text;
  std::vector<std::string> lost;  // sentences: a key of the plan, its value, and that it has no counterpart
};

/// A shell script: arguments of pretrain_gpt.py and the launcher's.
ForeignFile export_megatron(const Plan& plan);
/// The JSON of deepspeed.initialize. The model and the row length have no place in it.
ForeignFile export_deepspeed(const Plan& plan);
/// TOML of torchtitan's train.
ForeignFile export_torchtitan(const Plan& plan);

/// Keys that differ from a plan's defaults and whose path starts with none of `covered`: a sentence for each.
std::vector<std::string> keys_without_counterpart(const Plan& plan, const std::vector<std::string_view>& covered,
                                                  std::string_view tool);

}  // namespace reckon
