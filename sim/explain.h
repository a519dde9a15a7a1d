// What each part of a simulated step costs: how much shorter the step would be if that part were free.
#pragma once

#include <vector>

#include "plan/simulation_details.h"
#include "sim/played_step.h"

namespace reckon {

/// One row for every component, each from a simulation of its own, and rows for all communication, all recomputation,
/// the waiting for other stages ("bubble": no stage waits for a message) and the slow-down of overlapped work. Largest
/// first. Savings do not add up: what one part hides, another pays.
std::vector<Saving> explain(const PlayedStep& step);

}  // namespace reckon
