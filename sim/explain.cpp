#include "sim/explain.h"

#include <algorithm>
#include <functional>

#include "sim/streams.h"

namespace reckon {
namespace {

/// Labels of tasks for which `wanted` holds.
std::vector<int> labels_where(const PlayedStep& step,
                              const std::function<bool(const std::string&, const Task&)>& wanted) {
  std::vector<bool> found(static_cast<std::size_t>(step.graph.labels.size()), false);
  for (const StageGraph& stage : step.graph.stages)
    for (const auto& stream : stage.program.streams)
      for (const Task& task : stream)
        if (wanted(step.graph.labels.name(task.label), task)) found[static_cast<std::size_t>(task.label)] = true;
  std::vector<int> labels;
  for (int label = 0; label < step.graph.labels.size(); ++label)
    if (found[static_cast<std::size_t>(label)]) labels.push_back(label);
  return labels;
}

bool takes_time(const std::string&, const Task& task) {
  return task.duration.value > 0;
}

}  // namespace

std::vector<Saving> explain(const PlayedStep& step) {
  std::vector<Saving> rows;
  const auto add = [&](const std::string& component, const WhatIsFree& free) {
    const Picoseconds without = play_without(step, free);
    rows.push_back({component, to_seconds(without), to_seconds(step.end - without)});
  };
  for (const int label : labels_where(step, takes_time)) add(step.graph.labels.name(label), {.labels = {label}});
  add("all communication", {.labels = labels_where(step, [](const std::string&, const Task& task) {
                              return task.kind == TaskKind::transfer;
                            })});
  const auto recomputed =
      labels_where(step, [](const std::string& name, const Task&) { return name.starts_with("recompute."); });
  if (!recomputed.empty()) add("all recomputation", {.labels = recomputed});
  if (step.graph.stages.size() > 1) add("bubble", {.messages = true});
  const Overlap& overlap = step.cluster.scenario.overlap;
  if (overlap.work_slowdown != 1.0 || overlap.transfer_slowdown != 1.0) add("overlap slow-down", {.overlap = true});
  std::stable_sort(rows.begin(), rows.end(), [](const Saving& a, const Saving& b) { return a.saved > b.saved; });
  return rows;
}

}  // namespace reckon
