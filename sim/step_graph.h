// The tasks of one training step: plan, op times and pipeline schedule turned into a program for each pipeline stage.
// What overlaps with what is decided here, in one place, and described in docs/simulator.md.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plan/kept_tensors.h"
#include "plan/op_times.h"
#include "plan/pipeline_schedule.h"
#include "plan/plan.h"
#include "plan/stage_sections.h"
#include "plan/state_traffic.h"
#include "sim/program.h"
#include "sim/streams.h"

namespace reckon {

/// Names of components ("forward.qkv", "tensor.all_gather"); a task's label is an index into them.
class Labels {
 public:
  int of(std::string_view name);
  const std::string& name(int label) const { return names_[static_cast<std::size_t>(label)]; }
  int size() const { return static_cast<int>(names_.size()); }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, int> index_;
};

/// What a task belongs to.
struct TaskNote {
  std::int32_t micro_batch = -1, chunk = -1;
  std::int64_t layer = kNoLayer;
};

/// How sections of one kind run on one stage.
struct SectionPlay {
  const SectionTimes* times = nullptr;  // of the caller's OpTimes
  KeptSet kept;
  StorageTimes storage;    // passes that narrow kept tensors in forward and widen them in backward
  WeightElements weights;  // on this rank
};

enum class Phase : std::uint8_t { forward, recompute, backward };

/// One op of one section, and the tasks of the compute stream that carry it out (possibly none).
struct OpRun {
  Phase phase = Phase::forward;
  std::int32_t micro_batch = 0, chunk = 0, section = 0, op = 0;
  std::int32_t first_task = 0, end_task = 0;
};

struct StageGraph {
  Program program;
  std::array<std::vector<TaskNote>, kStreams> notes;  // parallel to the program's streams
  std::vector<ChunkSections> chunks;
  std::vector<SectionPlay> plays;     // by variant
  std::vector<OpRun> runs;            // in order of execution
  std::vector<StateTraffic> traffic;  // of all kinds

  const SectionPlay& play_of(const StageSection& section) const { return plays[variant(section)]; }
};

struct StepGraph {
  Labels labels;
  std::vector<StageGraph> stages;
};

/// `plan` is checked and resolved; `times` has an entry for each of its stages and must outlive the result.
StepGraph build_step_graph(const Plan& plan, const OpTimes& times);

}  // namespace reckon
