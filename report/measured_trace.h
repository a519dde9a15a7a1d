// The ranks' traces of one step as one file for the Perfetto viewer (Trace Event Format): ranks as processes, messages
// between stages as arrows.
#pragma once

#include <string>
#include <vector>

#include "plan/rank_trace.h"

namespace reckon {

/// Time zero is the earliest span. One JSON document.
std::string measured_trace_json(const std::vector<RankTrace>& traces);

}  // namespace reckon
