// `reckon-rank calibrate`: measures this machine with all ranks busy and writes a hardware file.
#pragma once

#include "cli/rank/rank_options.h"

namespace reckon {

/// Samples the plan's ops where a plan is given, a small LLaMA's in FP32 and BF16 otherwise. Writes OUT.
void calibrate_command(const RankOptions& options);

}  // namespace reckon
