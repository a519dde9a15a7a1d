// One HTML file that shows everything known about a plan, a run, a search or a comparison. It opens without a network:
// styles, script and chart library (Chart.js) are inside. The data are one JSON document; the scripts of report/page/
// draw what is in it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/search_result.h"
#include "plan/step_profile.h"
#include "report/compare_profiles.h"
#include "report/plan_difference.h"
#include "report/read_metrics.h"
#include "report/run_history.h"

namespace reckon {

/// Kinds of boxes in a schedule, as the page names and colours them.
inline constexpr std::array<const char*, 6> kScheduleKinds = {"forward", "backward", "states",
                                                              "other",   "network",  "idle"};

/// Work (or communication) of one rank of a stage from `start` to `end`.
struct ScheduleBox {
  std::int64_t stage = 0;
  int kind = 0;                              // index into kScheduleKinds
  std::int64_t micro_batch = -1, chunk = 0;  // -1: of the whole step
  Seconds start, end;
};

struct Schedule {
  Seconds step;   // the whole step
  Seconds shown;  // how much of it `boxes` cover, from its start
  std::vector<ScheduleBox> boxes;
};

/// What one stage has allocated: equal intervals of the step, each with the bytes at its highest moment.
struct MemoryCurve {
  std::string stage;  // "stage 0"
  Seconds step;
  std::vector<std::string> categories;
  std::vector<std::vector<std::int64_t>> bytes;  // [categories, intervals]
};

/// One call of an op in one pass.
struct RooflineOp {
  std::string name, pass;  // "qkv"; forward, backward, input gradient, weight gradient
  double flops = 0, bytes = 0;
  Seconds seconds;
};

struct Roofline {
  FlopsPerSecond peak;
  BytesPerSecond bandwidth;
  std::vector<RooflineOp> ops;
};

/// A group's traffic and the slowest link it crosses.
struct LinkTraffic {
  TrafficEntry entry;
  bool between_nodes = false;
};

/// What a page shows; anything may be missing. The first profile is what the verdict is about, the others stand beside.
struct Report {
  std::string title, summary, verdict;
  std::vector<StepProfile> profiles;
  std::optional<ProfileComparison> comparison;
  std::optional<Schedule> schedule;
  std::vector<MemoryCurve> memory_over_time;
  std::optional<Roofline> roofline;
  std::vector<LinkTraffic> traffic;
  std::vector<LoggedStep> metrics;
  std::optional<SearchResult> search;
  std::optional<RunHistory> history;
  std::optional<PlanDifference> difference;
};

/// The whole file. No text of `report` can become markup: it enters as escaped JSON, or escaped for HTML.
std::string report_page(const Report& report);

}  // namespace reckon
