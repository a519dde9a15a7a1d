// Megatron's schedules (arXiv 2104.04473, sections 2.2 and 2.3): a rank runs some warm-up forwards, then alternates one
// forward and one backward, then drains. Interleaved ranks take `stages` micro-batches through one chunk before the
// next.
#include "plan/pipeline_schedule.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>

#include "plan/errors.h"

namespace reckon {

namespace {

void check(ScheduleKind kind, int stages, int stage, int chunks, int micro_batches) {
  if (stages < 1 || stage < 0 || stage >= stages || chunks < 1 || micro_batches < 1)
    throw RuleError({{fmt::format("a pipeline needs at least one stage, chunk and micro-batch and a stage below their "
                                  "number; found stage {} of {}, {} chunks, {} micro-batches",
                                  stage, stages, chunks, micro_batches),
                      {},
                      0,
                      0,
                      "parallel.pipeline"}});
  if (kind != ScheduleKind::interleaved && chunks != 1)
    throw RuleError(
        {{fmt::format("only the interleaved schedule has virtual stages; found {} chunks, legal is 1", chunks),
          {},
          0,
          0,
          "parallel.chunks"}});
  if (kind == ScheduleKind::interleaved && micro_batches % stages != 0)
    throw RuleError(
        {{fmt::format("the interleaved schedule needs a multiple of {} micro-batches (its stages); found {}", stages,
                      micro_batches),
          {},
          0,
          0,
          "parallel.schedule"}});
}

int warm_up_forwards(ScheduleKind kind, int stages, int stage, int chunks, int micro_batches) {
  const int all = micro_batches * chunks;
  switch (kind) {
    case ScheduleKind::gpipe: return all;
    case ScheduleKind::one_forward_one_backward: return std::min(all, stages - stage - 1);
    case ScheduleKind::interleaved: return std::min(all, 2 * (stages - stage - 1) + (chunks - 1) * stages);
  }
  throw std::logic_error("unknown schedule");
}

/// The k-th forward of a rank; the k-th backward takes the same micro-batch through the chunks in reverse.
Action forward_action(int k, int stages, int chunks) {
  const int round = k / (stages * chunks);  // rounds of `stages` micro-batches through all chunks
  return {ActionKind::forward, round * stages + k % stages, (k % (stages * chunks)) / stages};
}

Action backward_action(int k, int stages, int chunks) {
  const Action forward = forward_action(k, stages, chunks);
  return {ActionKind::backward, forward.micro_batch, chunks - 1 - forward.chunk};
}

}  // namespace

std::vector<Action> pipeline_actions(ScheduleKind kind, int stages, int stage, int chunks, int micro_batches) {
  check(kind, stages, stage, chunks, micro_batches);
  const int all = micro_batches * chunks;
  const int warm_up = warm_up_forwards(kind, stages, stage, chunks, micro_batches);
  const int group = kind == ScheduleKind::interleaved ? stages : 1;
  std::vector<Action> actions;
  actions.reserve(2 * static_cast<std::size_t>(all));
  for (int k = 0; k < warm_up; ++k) actions.push_back(forward_action(k, group, chunks));
  for (int k = warm_up; k < all; ++k) {
    actions.push_back(forward_action(k, group, chunks));
    actions.push_back(backward_action(k - warm_up, group, chunks));
  }
  for (int k = all - warm_up; k < all; ++k) actions.push_back(backward_action(k, group, chunks));
  return actions;
}

int peak_in_flight(ScheduleKind kind, int stages, int stage, int chunks, int micro_batches) {
  int alive = 0, peak = 0;
  for (const Action& action : pipeline_actions(kind, stages, stage, chunks, micro_batches)) {
    alive += action.kind == ActionKind::forward ? 1 : -1;
    peak = std::max(peak, alive);
  }
  return peak;
}

std::vector<int> bits_by_stage(const std::vector<int>& in_flight, int bits) {
  if (in_flight.empty()) return {};
  const int most = *std::max_element(in_flight.begin(), in_flight.end());
  std::vector<int> widths;
  for (const int count : in_flight) {
    const long width = count > 0 ? std::lround(static_cast<double>(bits) * most / count) : 8;
    widths.push_back(std::max(bits, static_cast<int>(std::min(width, 8L))));
  }
  return widths;
}

std::vector<std::int64_t> layers_per_virtual_stage(const Plan& plan) {
  const std::int64_t stages = plan.virtual_stages();
  const std::vector<std::int64_t>& listed = plan.parallel.layers_per_stage;
  if (listed.empty()) {
    std::vector<std::int64_t> even(static_cast<std::size_t>(stages), plan.model.layers / stages);
    for (std::int64_t i = 0; i < plan.model.layers % stages; ++i) ++even[static_cast<std::size_t>(i)];
    return even;
  }
  const std::int64_t sum = std::accumulate(listed.begin(), listed.end(), std::int64_t{0});
  if (static_cast<std::int64_t>(listed.size()) != stages || sum != plan.model.layers)
    throw RuleError(
        {{fmt::format("layers_per_stage lists {} layers on {} stages; the model has {} layers and the plan {} "
                      "virtual stages",
                      sum, listed.size(), plan.model.layers, stages),
          {},
          0,
          0,
          "parallel.layers_per_stage"}});
  return listed;
}

}  // namespace reckon
