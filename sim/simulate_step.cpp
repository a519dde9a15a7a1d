#include "sim/simulate_step.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "plan/errors.h"
#include "plan/simulation_details.h"

namespace reckon {
namespace {

/// What lives all the time on a stage; nothing where the closed form says nothing.
StageProfile predicted_stage(const StepProfile& predicted, std::size_t stage) {
  if (stage < predicted.stages.size()) return predicted.stages[stage];
  StageProfile profile;
  profile.stage = static_cast<std::int64_t>(stage);
  return profile;
}

/// Durations of the step with seeds sim.seed, sim.seed + 1, ...; sorted.
std::vector<Seconds> sample_steps(const Plan& plan, const PlayedStep& step, const SimulationOptions& options) {
  std::vector<Seconds> times{to_seconds(step.end)};
  if (plan.sim.jitter <= 0.0 || options.samples <= 1) return times;
  times.resize(static_cast<std::size_t>(options.samples));
  const auto threads = static_cast<std::size_t>(std::max(1, options.threads));
  const auto play_every = [&](std::size_t first) {
    for (std::size_t i = first; i < times.size(); i += threads) times[i] = to_seconds(play_sample(plan, step, i));
  };
  std::vector<std::future<void>> workers;  // sample 0 has been played
  for (std::size_t first = 1; first <= threads; ++first)
    workers.push_back(std::async(std::launch::async, play_every, first));
  for (auto& worker : workers) worker.get();
  std::sort(times.begin(), times.end());
  return times;
}

Seconds mean(const std::vector<Seconds>& times) {
  Seconds sum(0.0);
  for (const Seconds time : times) sum += time;
  return sum * (1.0 / static_cast<double>(times.size()));
}

/// Picoseconds in 64 bits end after 106 days.
RuleError too_long(Seconds predicted) {
  return RuleError(
      {{fmt::format("the step ({:.3g} s in closed form) takes longer than the 106 days that can be simulated; "
                    "a smaller batch is needed, or less under sim (compute_scale, network_scale, slow_ranks)",
                    predicted.value),
        {},
        0,
        0,
        {}}});
}

StepSummary summary(const StepSummary& predicted, const std::vector<Seconds>& samples, const Plan& plan) {
  StepSummary step = predicted;
  step.seconds = mean(samples);
  if (samples.size() > 1) {
    step.interval_low = quantile(samples, 0.1);
    step.interval_high = quantile(samples, 0.9);
  } else if (predicted.seconds.value > 0.0) {  // the op times are as uncertain as in the closed form
    step.interval_low = step.seconds * (predicted.interval_low / predicted.seconds);
    step.interval_high = step.seconds * (predicted.interval_high / predicted.seconds);
  }
  step.tokens = plan.batch.global_batch * plan.batch.sequence_length;
  if (step.useful_tokens == 0) step.useful_tokens = step.tokens;
  const double device_seconds = step.seconds.value * static_cast<double>(plan.world_size());
  step.tokens_per_second_per_device = static_cast<double>(step.tokens) / device_seconds;
  step.useful_tokens_per_second_per_device = static_cast<double>(step.useful_tokens) / device_seconds;
  const double speed = predicted.seconds.value > 0.0 ? predicted.seconds / step.seconds : 0.0;
  step.mfu = predicted.mfu * speed;
  step.hfu = predicted.hfu * speed;
  return step;
}

/// The first sample's components, stretched to the mean of all, so that they still sum to the step.
std::vector<TimeComponent> scaled(std::vector<TimeComponent> components, double factor) {
  for (TimeComponent& component : components) {
    component.seconds *= factor;
    component.exposed_seconds *= factor;
  }
  return components;
}

/// Share of the step in which the average stage waits for another.
double bubble_fraction(const PlayedStep& step, std::int64_t stages) {
  double sum = 0.0;
  for (std::int64_t stage = 0; stage < stages; ++stage)
    for (const TimeComponent& component : break_down(
             *step.spans, step.graph.labels, step.rank_of_stage(static_cast<int>(stage)), step.end, step.perturbation))
      if (component.component == "bubble") sum += component.exposed_seconds.value;
  return sum / static_cast<double>(stages) / to_seconds(step.end).value;
}

/// Of the stage that sends most, entry by entry.
std::vector<TrafficEntry> traffic(const StepGraph& graph) {
  using Key = std::tuple<std::string, std::string, std::string>;
  std::map<Key, TrafficEntry> worst;
  for (const StageGraph& stage : graph.stages) {
    for (const StateTraffic& sent : stage.traffic) {
      TrafficEntry entry{std::string(name_of(sent.group)), std::string(name_of(sent.collective)), sent.dtype,
                         sent.calls, std::llround(sent.bytes_sent)};
      if (entry.bytes_per_rank == 0) continue;  // a group of one
      TrafficEntry& most = worst[{entry.group, entry.collective, entry.dtype}];
      if (entry.bytes_per_rank > most.bytes_per_rank) most = std::move(entry);
    }
  }
  std::vector<TrafficEntry> entries;
  for (auto& [key, entry] : worst) entries.push_back(std::move(entry));
  return entries;
}

StageProfile stage_profile(const Plan& plan, StageProfile stage, const MemoryTimeline& timeline) {
  const auto part = [&](MemoryCategory category) {
    return Bytes(timeline.at_peak[static_cast<std::size_t>(category)]);
  };
  stage.worst_rank = timeline.rank;
  StageMemory& memory = stage.memory;
  memory.activations = part(MemoryCategory::activations);
  memory.transient = part(MemoryCategory::transient);
  memory.peak_allocated = timeline.peak;
  memory.allocator_slack = peak_reserved(plan, timeline) - timeline.peak;
  memory.device_used = timeline.peak + memory.allocator_slack + memory.communicators + memory.context;
  return stage;
}

Bytes memory_limit(const Plan& plan, const SimulationOptions& options) {
  if (options.memory_limit) return *options.memory_limit;
  if (plan.memory.limit) return *plan.memory.limit;
  return plan.hardware.device.memory - plan.hardware.context;
}

/// An allocator that reserves less under a limit: it gives segments without a block in use back before it fails.
void fit_slack(StageMemory& memory, Bytes limit) {
  const Bytes over = memory.device_used - memory.context - limit;
  memory.allocator_slack -= over;
  memory.device_used -= over;
}

/// The limit covers what this process allocates and the buffers of its communicators, not the context.
void judge_memory(const Plan& plan, const SimulationOptions& options, Simulation& simulation) {
  Verdict& verdict = simulation.profile.verdict;
  verdict = {};
  verdict.limit = memory_limit(plan, options);
  for (std::size_t stage = 0; stage < simulation.memory.size(); ++stage) {
    StageProfile& profile = simulation.profile.stages[stage];
    const auto overflow = first_overflow(plan, simulation.memory[stage], verdict.limit, profile.memory.communicators);
    if (!overflow && profile.memory.device_used - profile.memory.context > verdict.limit)
      fit_slack(profile.memory, verdict.limit);
    const Bytes need = profile.memory.device_used - profile.memory.context;
    if (need > verdict.need) {
      verdict.need = need;
      verdict.worst_rank = profile.worst_rank;
    }
    if (overflow && (!simulation.out_of_memory || overflow->time < simulation.out_of_memory->time))
      simulation.out_of_memory = overflow;
  }
  verdict.fits = !simulation.out_of_memory.has_value();
  verdict.probability = verdict.fits ? 1.0 : 0.0;
  if (!verdict.fits) verdict.breaks = std::string(name_of(simulation.out_of_memory->category));
}

std::vector<std::string> notes(const Plan& plan, const Simulation& simulation) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("simulated {} of {} ranks, {} tasks", simulation.simulated_ranks, plan.world_size(),
                              simulation.events));
  if (plan.sim.jitter > 0.0)
    lines.push_back(fmt::format("op times vary by {:.1f} % from rank to rank and op to op, seed {}, {} steps",
                                100.0 * plan.sim.jitter, plan.sim.seed, simulation.step_samples.size()));
  for (const auto& [rank, factor] : plan.sim.slow_ranks)
    lines.push_back(fmt::format("rank {} computes {:g} times as long", rank, factor));
  if (plan.sim.free_communication) lines.emplace_back("communication takes no time");
  if (plan.sim.free_overlap) lines.emplace_back("overlapped computation is not slowed");
  if (plan.sim.network_scale != 1.0) lines.push_back(fmt::format("network {:g} times as fast", plan.sim.network_scale));
  if (plan.sim.compute_scale != 1.0) lines.push_back(fmt::format("devices {:g} times as fast", plan.sim.compute_scale));
  return lines;
}

/// Why the closed form's step differs, where it does by more than a hundredth.
std::optional<std::string> disagreement(const Plan& plan, const OpTimes& times, Seconds predicted, Seconds simulated) {
  const bool changed = is_disturbed(plan.sim) || plan.sim.network_scale != 1.0 || plan.sim.compute_scale != 1.0 ||
                       plan.sim.free_communication || plan.sim.free_overlap;
  const auto error = [&](Seconds time) { return time / predicted - 1.0; };
  if (changed || predicted.value <= 0.0 || std::abs(error(simulated)) <= 0.01) return std::nullopt;
  const Seconds apart = to_seconds(play_step(plan, times, {.messages_share_links = false})->end);
  const bool messages = std::abs(error(apart)) <= 0.01;
  return fmt::format("the step takes {:+.1f} % against the closed form{}", 100.0 * error(simulated),
                     messages ? ", which lets messages between stages pass collectives on the same links" : "");
}

}  // namespace

Simulation simulate_step(const StepProfile& predicted, const OpTimes& times, const SimulationOptions& options) {
  const Plan& plan = predicted.plan;
  Simulation simulation;
  if (predicted.step.seconds.value > 1e6) throw too_long(predicted.step.seconds);
  try {
    simulation.step = play_step(plan, times, {.unfolded = options.unfolded});
    simulation.step_samples = sample_steps(plan, *simulation.step, options);
  } catch (const std::overflow_error&) {
    throw too_long(predicted.step.seconds);
  }
  const PlayedStep& step = *simulation.step;
  simulation.events = step.events;
  simulation.simulated_ranks = static_cast<std::int64_t>(step.cluster.ranks.size());
  if (step.keeps_all())
    simulation.critical_path =
        sum_by_component(critical_path(*step.spans, step.graph.labels, static_cast<int>(simulation.simulated_ranks)));

  StepProfile& profile = simulation.profile;
  profile = predicted;
  profile.source = ProfileSource::simulated;
  profile.step = summary(predicted.step, simulation.step_samples, plan);
  profile.step.bubble_fraction = bubble_fraction(step, plan.parallel.pipeline);
  profile.time = scaled(break_down(*step.spans, step.graph.labels, step.slowest, step.end, step.perturbation),
                        profile.step.seconds / to_seconds(step.end));
  profile.traffic = traffic(step.graph);
  profile.stages.clear();
  for (std::int64_t stage = 0; stage < plan.parallel.pipeline; ++stage) {
    StageProfile states = predicted_stage(predicted, static_cast<std::size_t>(stage));
    simulation.memory.push_back(memory_timeline(plan, step, stage, states.memory));
    profile.stages.push_back(stage_profile(plan, std::move(states), simulation.memory.back()));
  }
  judge_memory(plan, options, simulation);
  for (std::string& line : notes(plan, simulation)) profile.assumptions.push_back(std::move(line));
  if (auto line = disagreement(plan, times, predicted.step.seconds, profile.step.seconds))
    profile.assumptions.push_back(std::move(*line));
  return simulation;
}

}  // namespace reckon
