// `reckon-rank train`: this process's ranks of a training run.
#pragma once

#include <exception>
#include <functional>

#include "cli/rank/rank_options.h"

namespace reckon {

/// `before_ranks_start` is called when all that can be checked has been. Rank 0 writes OUT/metrics.jsonl (one line a
/// step) and, at the end, OUT/measured.json. SIGTERM and SIGINT end the run after the current step, with both files
/// written; under mpirun only where that takes less than the second after which mpirun sends SIGKILL. `tell_failure`
/// tells a failure and returns the exit code; it is called where a stuck rank forbids unwinding.
void train_command(const RankOptions& options, const std::function<void()>& before_ranks_start,
                   const std::function<int(std::exception_ptr)>& tell_failure);

}  // namespace reckon
