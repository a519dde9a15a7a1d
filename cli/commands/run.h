// `reckon run`: predicts, executes and compares one plan.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/launcher.h"
#include "cli/output.h"
#include "plan/errors.h"

namespace reckon {

struct RunOptions {
  std::string plan;
  std::vector<std::string> overrides;
  std::optional<std::int64_t> steps;  // over train.steps of the plan
  std::string out;                    // folder of the run; empty = runs/PLAN-DATE
  std::optional<Backend> backend;     // empty = mpi where the plan's devices are CPUs, else nccl
  bool check_gradients = false;       // compare the gradients of a step with those of everything kept
  std::string resume;                 // folder of an earlier run to go on from; empty = from the start
};

/// Writes DIR/{plan.yaml, predicted.json, simulated.json, comparison.json, report.html} and traces; its ranks write
/// what they measure. Under mpirun or srun every process acts as one rank, and rank 0 also as above.
ExitCode run_command(const RunOptions& options, const Output& output);

}  // namespace reckon
