// A fault on purpose, at one place of a run, to see what the run and its launcher make of it (docs/faults.md).
#pragma once

#include <cstdint>
#include <string_view>

namespace reckon {

/// Where a rank is. `reduction`: gradients are computed, their sums not all there; `checkpoint`: the rank's own file is
/// written, the checkpoint not complete; `latest` (rank 0 only): it is complete, `latest` still names the one before.
enum class RunPhase { none, start, forward, backward, reduction, optimizer, checkpoint, latest };

class RehearsedFault {
 public:
  /// None.
  RehearsedFault() = default;
  /// "PHASE:RANK:STEP[:ACTION]", steps from 1; nothing on other ranks than RANK. Actions: kill (SIGKILL, if none is
  /// given), stop (SIGSTOP), sleep (this rank does not go on), memory (asks for more than there is), nan (the step's
  /// loss). Throws ConfigError.
  RehearsedFault(std::string_view text, int rank);
  /// What the environment variable RECKON_TEST_FAULT asks for.
  static RehearsedFault from_environment(int rank);

  /// Commits the fault if it is to be here.
  void reach(RunPhase phase, std::int64_t step) const;
  /// Whether the loss of this step is to be no number.
  bool spoils_loss(std::int64_t step) const {
    return phase_ != RunPhase::none && action_ == Action::nan && step == step_;
  }

 private:
  enum class Action { kill, stop, sleep, memory, nan };
  static Action action_of(std::string_view name);

  RunPhase phase_ = RunPhase::none;
  std::int64_t step_ = 0;
  Action action_ = Action::kill;
};

}  // namespace reckon
