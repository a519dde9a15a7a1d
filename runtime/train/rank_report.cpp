#include "runtime/train/rank_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <sstream>
#include <tuple>

#include "plan/kept_tensors.h"
#include "plan/parameters.h"
#include "plan/stage_sections.h"
#include "plan/step_documents.h"
#include "runtime/train/device/device_rank.h"
#include "runtime/train/exchange_text.h"
#include "runtime/train/input/executable.h"
#include "runtime/train/statistics.h"
#include "runtime/train/virtual_stage.h"

namespace reckon {
namespace {

std::vector<double> column(const std::vector<StepTimes>& steps, std::vector<double> StepTimes::*values,
                           std::size_t component) {
  std::vector<double> result;
  for (const StepTimes& step : steps)
    result.push_back(component < (step.*values).size() ? (step.*values)[component] : 0.0);
  return result;
}

/// Medians by component.
std::vector<TimeComponent> time_components(const std::vector<std::string>& names, const std::vector<StepTimes>& steps) {
  std::vector<TimeComponent> components;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::vector<double> exposed = column(steps, &StepTimes::exposed, i);
    const double busy = median(column(steps, &StepTimes::busy, i));
    if (busy <= 0.0) continue;
    components.push_back({names[i], Seconds(busy), Seconds(median(exposed)), Seconds(spread(exposed))});
  }
  return components;
}

/// The parts that the step consists of, scaled to add up to it: medians alone need not.
std::vector<TimeComponent> adding_up_to(Seconds step, std::vector<TimeComponent> components) {
  double sum = 0;
  for (const TimeComponent& component : components) sum += component.exposed_seconds.value;
  for (TimeComponent& component : components)
    if (sum > 0) component.exposed_seconds *= step.value / sum;
  return components;
}

using TrafficKey = std::tuple<std::string, std::string, std::string>;  // group, collective, dtype

/// Of the mean step. A group may have several communicators, which count together.
std::vector<TrafficEntry> step_traffic(const std::vector<GroupCalls*>& groups, std::int64_t steps) {
  std::map<TrafficKey, std::pair<double, double>> sums;  // calls, bytes
  for (GroupCalls* group : groups)
    for (const TrafficCount& count : group->communicator().traffic()) {
      auto& [calls, bytes] = sums[{group->communicator().name(), count.collective, count.dtype}];
      calls += static_cast<double>(count.calls);
      bytes += count.bytes_per_rank;
    }
  std::vector<TrafficEntry> traffic;
  const auto count = static_cast<double>(steps);
  for (const auto& [key, sum] : sums)
    traffic.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), std::llround(sum.first / count),
                       std::llround(sum.second / count)});
  return traffic;
}

// Reports travel as lines of tab-separated fields.
std::string encode(const RankReport& report) {
  std::ostringstream out;
  out.precision(17);
  const StageMemory& m = report.memory;
  out << report.rank << '\t' << report.stage << '\t' << report.waiting << '\t' << report.bubble << '\t'
      << report.in_flight;
  for (const Bytes bytes : {m.parameters, m.gradients, m.optimizer, m.activations, m.transient, m.communication,
                            m.peak_allocated, m.allocator_slack, m.communicators, m.context, m.device_used})
    out << '\t' << bytes.value;
  out << '\t' << report.time.size() << '\t' << report.traffic.size() << '\n';
  for (const TimeComponent& c : report.time)
    out << c.component << '\t' << c.seconds.value << '\t' << c.exposed_seconds.value << '\t' << c.spread.value << '\n';
  for (const TrafficEntry& e : report.traffic)
    out << e.group << '\t' << e.collective << '\t' << e.dtype << '\t' << e.calls << '\t' << e.bytes_per_rank << '\n';
  return out.str();
}

RankReport decode(const std::string& text) {
  std::istringstream in(text);
  RankReport report;
  StageMemory& m = report.memory;
  std::size_t components = 0, entries = 0;
  in >> report.rank >> report.stage >> report.waiting >> report.bubble >> report.in_flight;
  for (Bytes* bytes : {&m.parameters, &m.gradients, &m.optimizer, &m.activations, &m.transient, &m.communication,
                       &m.peak_allocated, &m.allocator_slack, &m.communicators, &m.context, &m.device_used})
    in >> bytes->value;
  in >> components >> entries;
  for (std::size_t i = 0; i < components; ++i) {
    TimeComponent c;
    in >> c.component >> c.seconds.value >> c.exposed_seconds.value >> c.spread.value;
    report.time.push_back(c);
  }
  for (std::size_t i = 0; i < entries; ++i) {
    TrafficEntry e;
    in >> e.group >> e.collective >> e.dtype >> e.calls >> e.bytes_per_rank;
    report.traffic.push_back(e);
  }
  return report;
}

/// What is taken of the device beside the tensors. The process is the device's only one, or all its ranks are in it.
void add_device_memory(StageMemory& memory, RankTrainer& trainer, TrainDevice device) {
  const DeviceUse use = device_use(device);
  memory.communicators = trainer.world().library_memory();
  for (GroupCalls* group : trainer.groups().all()) memory.communicators += group->communicator().library_memory();
  memory.allocator_slack = use.reserved - memory.peak_allocated;
  memory.context = use.used - use.reserved - memory.communicators;
  memory.device_used = use.used;
}

StageProfile stage_profile(const Plan& plan, std::int64_t stage, const RankReport& worst) {
  StageProfile profile;
  profile.stage = stage;
  profile.layers = stage_layers(plan, stage);
  profile.recomputed_layers = recomputed_layers(plan, stage);
  profile.in_flight = worst.in_flight;
  profile.activation_bits = {storage_bits(plan, stage)};
  profile.worst_rank = worst.rank;
  profile.memory = worst.memory;
  if (profile.memory.device_used.value == 0) profile.memory.device_used = worst.memory.peak_allocated;
  return profile;
}

std::vector<TrafficEntry> worst_traffic(const std::vector<RankReport>& reports) {
  std::map<TrafficKey, TrafficEntry> worst;
  const auto amount = [](const TrafficEntry& entry) { return std::pair(entry.bytes_per_rank, entry.calls); };
  for (const RankReport& report : reports)
    for (const TrafficEntry& entry : report.traffic) {
      const auto [known, is_new] = worst.emplace(TrafficKey(entry.group, entry.collective, entry.dtype), entry);
      if (!is_new && amount(entry) > amount(known->second)) known->second = entry;
    }
  std::vector<TrafficEntry> entries;
  for (const auto& [key, entry] : worst) entries.push_back(entry);
  return entries;
}

StepSummary step_summary(const Plan& plan, const TimedSteps& steps) {
  const std::vector<double>& seconds = steps.seconds;
  StepSummary step;
  step.seconds = Seconds(median(seconds));
  step.interval_low = Seconds(quantile(seconds, 0.1));
  step.interval_high = Seconds(quantile(seconds, 0.9));
  step.tokens = plan.batch.global_batch * plan.batch.sequence_length;
  const double useful = std::accumulate(steps.useful_tokens.begin(), steps.useful_tokens.end(), 0.0);
  step.useful_tokens = std::llround(useful / std::max(1.0, static_cast<double>(steps.useful_tokens.size())));
  const double device_seconds = step.seconds.value * static_cast<double>(plan.world_size());
  step.tokens_per_second_per_device = static_cast<double>(step.tokens) / device_seconds;
  step.useful_tokens_per_second_per_device = static_cast<double>(step.useful_tokens) / device_seconds;
  return step;
}

}  // namespace

RankReport rank_report(RankTrainer& trainer, int rank, const MemoryAccount& account,
                       const std::vector<StepTimes>& steps, std::int64_t counted_steps, TrainDevice device) {
  RankReport report;
  report.rank = rank;
  report.stage = trainer.groups().coordinates.pipeline;
  report.in_flight = trainer.peak_in_flight();
  report.memory = stage_memory(account);
  if (!device.is_cpu()) add_device_memory(report.memory, trainer, device);
  report.time = time_components(trainer.timer().names(), steps);
  for (const TimeComponent& component : report.time) {
    if (component.component == "waiting") report.waiting = component.exposed_seconds.value;
    if (component.component == "bubble") report.bubble = component.exposed_seconds.value;
  }
  report.traffic = step_traffic(trainer.groups().all(), counted_steps);
  return report;
}

std::vector<RankReport> exchange_reports(Communicator& world, const RankReport& own) {
  std::vector<RankReport> reports;
  for (const std::string& text : exchange_text(world, encode(own))) reports.push_back(decode(text));
  return reports;
}

StepProfile measured_profile(const Plan& plan, const std::vector<RankReport>& reports, const TimedSteps& steps) {
  StepProfile profile;
  profile.source = ProfileSource::measured;
  profile.plan = plan;
  profile.world_size = plan.world_size();
  profile.parameters = count_parameters(plan.model);
  profile.active_parameters = count_active_parameters(plan.model);
  profile.step = step_summary(plan, steps);
  for (const RankReport& report : reports)
    profile.step.bubble_fraction += report.bubble / profile.step.seconds.value / static_cast<double>(reports.size());
  profile.packing = planned_documents(plan).packing;
  const auto awaited = std::min_element(reports.begin(), reports.end(), [](const RankReport& a, const RankReport& b) {
    return a.waiting < b.waiting;  // the rank that others wait for
  });
  profile.time = adding_up_to(profile.step.seconds, awaited->time);
  for (std::int64_t stage = 0; stage < plan.parallel.pipeline; ++stage) {
    const RankReport* worst = nullptr;
    for (const RankReport& report : reports)
      if (report.stage == stage && (!worst || report.memory.peak_allocated > worst->memory.peak_allocated))
        worst = &report;
    profile.stages.push_back(stage_profile(plan, stage, *worst));
    if (profile.stages.back().memory.peak_allocated > profile.verdict.need) {
      profile.verdict.need = profile.stages.back().memory.peak_allocated;
      profile.verdict.worst_rank = worst->rank;
    }
  }
  profile.verdict.limit = allocation_limit(plan);
  profile.traffic = worst_traffic(reports);
  return profile;
}

}  // namespace reckon
