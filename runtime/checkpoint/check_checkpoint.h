// Whether a checkpoint and a plan belong together.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/errors.h"
#include "plan/plan.h"
#include "runtime/checkpoint/checkpoint_reader.h"

namespace reckon {

using TensorShapes = std::map<std::string, std::vector<std::int64_t>>;

/// Every weight of a model by name; a tied table once.
TensorShapes parameter_shapes(const ModelSpec& model);

/// What is missing, not known or of another shape in `found`, one sentence each; `file` is named in all of them.
std::vector<Diagnostic> compare_shapes(const TensorShapes& needed, const TensorShapes& found, const std::string& file);

/// The plan has the checkpoint's model, needs no state that it lacks, and has steps left. Throws ConfigError listing
/// everything that is not so.
void require_resumable(const CheckpointReader& checkpoint, const Plan& plan);

}  // namespace reckon
