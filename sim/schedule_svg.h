// A picture of a simulated step: what every stage does when, and what memory that takes.
#pragma once

#include <string>

#include "sim/simulate_step.h"

namespace reckon {

/// A complete SVG document, also fit to be put into HTML. One row for each kept rank of a stage (of all ranks, one a
/// stage): forward and backward actions with their micro-batch, communication below them; then memory by category with
/// the limit.
std::string schedule_svg(const Simulation& simulation);

}  // namespace reckon
