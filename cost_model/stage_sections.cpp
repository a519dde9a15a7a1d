#include "cost_model/stage_sections.h"

#include <algorithm>

#include "plan/pipeline_schedule.h"

namespace reckon {

namespace {

void append(ChunkRuns& runs, Section section, bool recomputed) {
  if (runs.empty() || runs.back().section != section || runs.back().recomputed != recomputed)
    runs.push_back({section, recomputed, 0});
  ++runs.back().count;
}

}  // namespace

std::int64_t stage_layers(const Plan& plan, std::int64_t stage) {
  const std::vector<std::int64_t> layers = layers_per_virtual_stage(plan);
  std::int64_t sum = 0;
  for (std::int64_t chunk = 0; chunk < plan.parallel.chunks; ++chunk)
    sum += layers[static_cast<std::size_t>(chunk * plan.parallel.pipeline + stage)];
  return sum;
}

std::int64_t recomputed_layers(const Plan& plan, std::int64_t stage) {
  const std::vector<std::int64_t>& listed = plan.activations.recompute_layers;
  if (plan.activations.recompute == Recompute::none || listed.empty()) return 0;
  const std::int64_t wanted = listed.size() == 1 ? listed.front() : listed.at(static_cast<std::size_t>(stage));
  return std::min(wanted, stage_layers(plan, stage));
}

std::vector<ChunkRuns> stage_runs(const Plan& plan, std::int64_t stage) {
  const std::vector<std::int64_t> layers = layers_per_virtual_stage(plan);
  std::vector<ChunkRuns> chunks(static_cast<std::size_t>(plan.parallel.chunks));
  std::int64_t layer = 0, to_recompute = recomputed_layers(plan, stage);
  for (std::int64_t virtual_stage = 0; virtual_stage < plan.virtual_stages(); ++virtual_stage) {
    const std::int64_t end = layer + layers[static_cast<std::size_t>(virtual_stage)];
    if (virtual_stage % plan.parallel.pipeline != stage) {
      layer = end;
      continue;
    }
    ChunkRuns& runs = chunks[static_cast<std::size_t>(virtual_stage / plan.parallel.pipeline)];
    if (virtual_stage == 0) append(runs, Section::embedding, false);
    for (; layer < end; ++layer)
      append(runs, plan.model.layer_is_moe(layer) ? Section::moe_layer : Section::dense_layer, to_recompute-- > 0);
    if (virtual_stage == plan.virtual_stages() - 1) append(runs, Section::head, false);
  }
  return chunks;
}

}  // namespace reckon
