// One rank's part of the state of training, between its flat buffers and the tensors of a checkpoint.
#pragma once

#include <filesystem>

#include "runtime/checkpoint/durable_file.h"
#include "runtime/checkpoint/weight_source.h"
#include "runtime/train/optimizer.h"

namespace reckon {

/// Writes what this rank alone counts: the files of all ranks hold every weight of the model once. Throws RunError.
FileSeal write_rank_state(const std::filesystem::path& file, const ParameterLayout& layout, const Optimizer& optimizer);

/// Fills every state of `states` that this rank keeps; the padding of vocabulary tables becomes zero. The weights that
/// other ranks update follow with Optimizer::gather_weights. Throws ConfigError when the source lacks something.
void read_rank_state(const WeightSource& source, const ParameterLayout& layout, const std::vector<std::string>& states,
                     Optimizer& optimizer);

}  // namespace reckon
