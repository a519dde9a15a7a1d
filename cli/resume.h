// What `run --resume` goes on from, and the folder in which the run goes on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace reckon {

struct ResumePoint {
  std::filesystem::path checkpoint;  // empty: the run starts from the beginning
  std::filesystem::path run;         // the folder of the run that wrote it; empty when the checkpoint lies elsewhere
  std::int64_t step = 0;
};

/// The checkpoint that `place` means, checked against the plan (its files' content is left to the ranks). Throws
/// ConfigError.
ResumePoint find_resume_point(const std::string& place, const Plan& plan);

/// Keys of the two plans that decide the course of training and differ: "train.seed was 1 and is 2".
std::vector<std::string> changed_course(const ResumePoint& from, const Plan& plan);

/// Throws ConfigError when a run in `folder` would lose checkpoints that are there: those of another run, or later ones
/// than the one it resumes from.
void require_nothing_lost(const std::filesystem::path& folder, const ResumePoint& from);

}  // namespace reckon
