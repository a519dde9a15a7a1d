#include <algorithm>

#include "cost_model/score_cells.h"

namespace reckon {

std::string set_layout(ScoreCells& row, std::int64_t gpus, ParallelSpec& parallel) {
  const auto degree = [&](const char* column) { return row.count(column).value_or(1); };
  if (gpus > 1 && row.empty("tp") && row.empty("pp") && row.empty("cp") && row.empty("dp")) return "no_layout";
  parallel.tensor = degree("tp");
  parallel.pipeline = degree("pp");
  parallel.chunks = degree("vpp");
  parallel.expert = degree("ep");
  const std::int64_t context = degree("cp");
  for (const char* column : {"tp", "pp", "cp", "dp", "vpp", "ep", "ulysses", "ring"})
    if (degree(column) < 1) return "layout_mismatch";
  parallel.ulysses = degree("ulysses");
  parallel.ring =
      row.count("ring").value_or(std::max<std::int64_t>(1, context / std::max<std::int64_t>(1, parallel.ulysses)));
  const std::int64_t model_ranks = parallel.tensor * parallel.pipeline * context;
  if (model_ranks < 1 || model_ranks > gpus || parallel.ulysses * parallel.ring != context) return "layout_mismatch";
  if (const auto data = row.count("dp")) {
    parallel.data = *data;
  } else {
    row.assumed("dp");
    if (gpus % model_ranks != 0) return "layout_mismatch";
    parallel.data = gpus / model_ranks;
  }
  if (model_ranks * parallel.data != gpus) {
    if (model_ranks * parallel.data * parallel.expert != gpus) return "layout_mismatch";
    parallel.data *= parallel.expert;
  }
  return parallel.data >= 1 ? "" : "layout_mismatch";
}

void set_schedule(const ScoreCells& row, ParallelSpec& parallel) {
  const std::string& schedule = row.text("schedule");
  parallel.schedule = parallel.chunks > 1 ? ScheduleKind::interleaved : ScheduleKind::one_forward_one_backward;
  if (schedule == "gpipe") parallel.schedule = ScheduleKind::gpipe;
  if (schedule == "interleaved") parallel.schedule = ScheduleKind::interleaved;
  if (schedule == "1f1b") parallel.schedule = ScheduleKind::one_forward_one_backward;
}

std::vector<std::int64_t> layers_by_cost(const Plan& plan) {
  const ModelSpec& model = plan.model;
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double layer = real(4 * model.heads * model.head_dim * model.hidden + 3 * model.ffn_hidden * model.hidden);
  const double total = layer * real(model.layers) + real(model.vocabulary * model.hidden);
  std::vector<std::int64_t> layers(static_cast<std::size_t>(plan.parallel.pipeline), 0);
  std::size_t stage = 0;
  for (std::int64_t i = 0; i < model.layers; ++i) {
    ++layers[stage];
    const bool full =
        layer * real(i + 1) > total * real(static_cast<std::int64_t>(stage) + 1) / real(plan.parallel.pipeline);
    if (full && stage + 1 < layers.size()) ++stage;
  }
  // The head may fill a stage before the last; plans have it last, so an empty stage takes a layer from the nearest
  // earlier one that has several: the first stages, where most micro-batches are in flight, stay as they were.
  for (std::size_t i = 1; i + 1 < layers.size(); ++i) {
    if (layers[i] > 0) continue;
    const auto donor = std::find_if(layers.rend() - static_cast<std::ptrdiff_t>(i), layers.rend(),
                                    [](std::int64_t count) { return count > 1; });
    if (donor == layers.rend()) continue;
    --*donor;
    layers[i] = 1;
  }
  return layers;
}

}  // namespace reckon
