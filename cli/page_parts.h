// What the HTML report draws, taken from a plan and its simulation.
#pragma once

#include "plan/op_times.h"
#include "plan/plan.h"
#include "report/report_page.h"
#include "sim/simulate_step.h"

namespace reckon {

/// Work by micro-batch and communication of one rank of each stage. A long step is cut where the page would get slow.
Schedule schedule_of(const Simulation& simulation);

/// One curve for each stage that was simulated.
std::vector<MemoryCurve> memory_over_time(const Simulation& simulation);

/// Every op of a layer, the embedding and the head: FLOPs and bytes of one call beside its time.
Roofline roofline_of(const Plan& plan, const OpTimes& times);

/// Traffic with the slowest link that each group crosses.
std::vector<LinkTraffic> traffic_by_link(const StepProfile& profile);

/// A page about one profile, with everything above. More profiles and a comparison can be put beside it.
Report plan_report(const StepProfile& subject, const Simulation& simulation, const OpTimes& times);

/// Puts other profiles of the same plan beside the subject.
void add_comparison(Report& report, const std::vector<StepProfile>& beside, const ProfileComparison& comparison);

}  // namespace reckon
