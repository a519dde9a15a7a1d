// `reckon reproduce`: the papers' tables beside predictions. Which constants were fitted on which rows is part of the
// result; every other row is a prediction. Derivations: docs/reproduce.md.
#pragma once

#include "plan/load_plan.h"
#include "plan/reproduction_result.h"

namespace reckon {

/// AGoQ (arXiv 2605.00539), table 2: recomputed layers and iteration time of LLaMA2-13B on 64 A6000.
ReproductionResult reproduce_agoq(const ConfigPaths& paths);

/// HSAP (arXiv 2606.30460): useful tokens/s of HSAP, Packing and Batching on four topologies of 8 devices.
ReproductionResult reproduce_hsap(const ConfigPaths& paths);

}  // namespace reckon
