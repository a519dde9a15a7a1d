// Saving and restoring a run, as all its ranks do it together.
#pragma once

#include <cstdint>
#include <filesystem>

#include "plan/plan.h"
#include "runtime/comm/communicator.h"
#include "runtime/train/rank_trainer.h"

namespace reckon {

/// Saves the state after `step` steps into `checkpoints` and removes all but the newest train.keep_checkpoints. When it
/// returns on any rank the checkpoint is complete and on the disk. When it throws RunError (a full disk, say) the
/// checkpoint before is intact and the latest, and nothing half written is left.
void save_checkpoint(const Plan& plan, Communicator& world, RankTrainer& trainer,
                     const std::filesystem::path& checkpoints, std::int64_t step);

/// Continues from a checkpoint, however it was sharded; returns the steps that have been made. Throws ConfigError
/// naming the file that was altered or what the plan needs and the checkpoint lacks.
std::int64_t load_checkpoint(const Plan& plan, Communicator& world, RankTrainer& trainer,
                             const std::filesystem::path& checkpoint);

/// Starts from the weights of train.initial_weights (HuggingFaceWeights). Throws ConfigError listing what does not fit.
void load_initial_weights(const Plan& plan, Communicator& world, RankTrainer& trainer);

}  // namespace reckon
