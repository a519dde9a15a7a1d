#include "cli/rank/calibrate_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <thread>

#include "cli/calibration_ranks.h"
#include "cli/find_configs.h"
#include "cli/processor_name.h"
#include "cost_model/fit_hardware.h"
#include "cost_model/state_cost.h"
#include "plan/core_sharing.h"
#include "plan/errors.h"
#include "plan/load_plan.h"
#include "plan/rank_grid.h"
#include "plan/step_documents.h"
#include "plan/storage_passes.h"
#include "report/write_file.h"
#include "runtime/comm/make_communicator.h"
#include "runtime/train/calibration_run.h"
#include "runtime/train/input/executable.h"
#include "runtime/train/library_versions.h"

namespace reckon {
namespace {

/// Ranks without a part in a visit wait for the others: in two steps of a plan's sampled layers nothing is heard of
/// them. Whoever dies meanwhile ends the calibration at once, whatever the timeout.
constexpr Seconds kLongestVisit{7200.0};

std::int64_t cores() {
  return std::max<std::int64_t>(1, std::thread::hardware_concurrency());
}

/// Products from a few hundred to a few thousand in every dimension, as small models have them.
std::vector<GemmShape> product_grid() {
  return {{1, 256, 320, 192},  {1, 384, 1024, 256}, {1, 768, 384, 768},  {1, 896, 1536, 320}, {1, 512, 3072, 448},
          {1, 1536, 512, 512}, {1, 640, 640, 1792}, {1, 960, 960, 1088}, {1, 1280, 2048, 640}};
}

/// Small LLaMAs of two sizes: bytes and latency can be told apart by the fits.
std::vector<Plan> grid_plans(NumberFormat compute) {
  Plan small;
  small.hardware.device.is_cpu = true;
  small.precision.compute = small.activations.stored = compute;
  small.model.name = "calibration";
  small.model.layers = 2;
  small.model.hidden = 320;
  small.model.ffn_hidden = 896;
  small.model.heads = small.model.kv_heads = 5;
  small.model.head_dim = 64;
  small.model.vocabulary = 3072;
  small.batch = {192, 3, 3};
  Plan large = small;
  large.model.layers = 1;
  large.model.hidden = 640;
  large.model.ffn_hidden = 1728;
  large.model.heads = 10;
  large.model.kv_heads = 2;
  large.model.vocabulary = 1536;
  large.batch = {384, 2, 2};
  return {small, large};
}

/// What two plans must have in common for one sampling to serve both.
std::string sampled_shapes(const Plan& plan, std::int64_t ranks) {
  std::string key(name_of(plan.precision.compute));
  const AttentionWork work = planned_attention_work(plan);
  for (const Section section : {Section::embedding, Section::dense_layer, Section::head})
    for (const Op& op : section_ops(plan, section, work).ops) key += "; " + measured_shape(op, ranks);
  for (const NumberFormat format : storage_use(plan).formats) key += fmt::format("; stored {}", name_of(format));
  key += "; " + narrow_update(plan);
  return key;
}

class JobList {
 public:
  JobList(CalibrationRanks ranks, bool quick) : most_ranks_(ranks.started) {
    const std::int64_t computing = ranks.computing;
    jobs_.computing = computing;
    jobs_.cores = cores();
    jobs_.quick = quick;
    jobs_.products = product_grid();
    for (std::int64_t group = 2; group <= computing; ++group)
      if (computing % group == 0) collectives_.insert({computing, group});
  }

  void add_grid(NumberFormat compute) {
    for (const Plan& plan : grid_plans(compute)) add_sampled(plan, jobs_.computing);
  }

  void add_plan(const Plan& plan) {
    const std::int64_t world = plan.world_size();
    const std::int64_t computing = std::min(world, jobs_.computing);
    add_sampled(plan, computing);
    if (samples_attention_apart(plan, computing)) add_attention(plan, computing);
    if (world < 2 || world > most_ranks_) return;
    const RankGrid grid(plan);
    for (const Group group : {Group::tensor, Group::ulysses, Group::ring, Group::data, Group::gradient, Group::shard,
                              Group::replica, Group::gradient_inside, Group::gradient_across})
      if (grid.size(group) > 1) collectives_.insert({world, grid.size(group)});
    if (plan.parallel.pipeline > 1 && world % 2 == 0) collectives_.insert({world, 2});
  }

  CalibrationJobs take() {
    jobs_.collectives.assign(collectives_.begin(), collectives_.end());
    return std::move(jobs_);
  }

 private:
  void add_sampled(const Plan& plan, std::int64_t ranks) {
    Plan sampled = sampled_plan(plan, ranks);
    require_executable(sampled);
    if (!shapes_.insert(sampled_shapes(sampled, ranks)).second) return;
    jobs_.plans.push_back({std::move(sampled), ranks});
  }

  /// The plan as it is: its steps are not sampled, so that it needs no ranks of its own.
  void add_attention(const Plan& plan, std::int64_t ranks) {
    if (attention_shapes_.insert(sampled_shapes(plan, ranks)).second) jobs_.attention.push_back({plan, ranks});
  }

  std::int64_t most_ranks_;
  CalibrationJobs jobs_;
  std::set<std::string> shapes_, attention_shapes_;
  std::set<CollectiveJob> collectives_;
};

CalibrationJobs jobs_of(const RankOptions& options) {
  const ConfigPaths paths = find_configs();
  std::vector<Plan> plans;
  std::set<NumberFormat> formats;
  std::vector<std::int64_t> worlds;
  for (const auto& file : options.sampled_plans) {
    plans.push_back(load_plan(file, options.overrides, paths));
    formats.insert(plans.back().precision.compute);
    worlds.push_back(plans.back().world_size());
  }
  if (plans.empty()) formats = {NumberFormat::fp32, NumberFormat::bf16};
  JobList list(calibration_ranks(worlds, cores(), options.ranks), options.quick);
  for (const Plan& plan : plans) list.add_plan(plan);
  for (const NumberFormat format : formats) list.add_grid(format);
  return list.take();
}

Bytes machine_memory() {
  return Bytes(static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGE_SIZE));
}

/// "product, forward 2.1 % of 6 held out; ..."
std::string quality_text(const std::vector<FitQuality>& qualities) {
  std::string text;
  for (const FitQuality& one : qualities)
    text += fmt::format(
        "{}{} {:.1f} % of {}", text.empty() ? "" : "; ", one.kind, 100.0 * one.relative_error,
        one.held_out > 0 ? fmt::format("{} held out", one.held_out) : fmt::format("{} fitted", one.samples));
  return text;
}

HardwareSpec hardware_of(const CalibrationJobs& jobs, const CalibrationSamples& samples) {
  HardwareSpec hardware;
  hardware.name = "local";
  hardware.source = "measured by reckon calibrate";
  hardware.cores = static_cast<int>(cores());
  hardware.devices_per_node = hardware.cores;
  DeviceSpec& device = hardware.device;
  device.name = processor_name();
  device.vendor = "CPU core";
  device.is_cpu = true;
  device.peak = {{NumberFormat::fp32, samples.fp32_peak}, {NumberFormat::bf16, samples.bf16_peak}};
  device.memory = machine_memory() / cores();
  device.memory_bandwidth = samples.bandwidth;
  hardware.intra_node = {samples.bandwidth, Seconds(5e-6), false};
  hardware.inter_node = hardware.intra_node;
  const std::vector<FitQuality> qualities = fit_hardware(samples, hardware);
  hardware.time.launch = Seconds(0.0);  // in the measured ops
  hardware.time.overlap_compute_slowdown = hardware.time.overlap_communication_slowdown = 1.0;
  const Quietness& quiet = samples.quietness;
  // Host, processor and date are added by `reckon calibrate`, which compares them later.
  hardware.provenance = {{"ranks", fmt::format("{}", jobs.computing)},
                         {"libtorch", libtorch_version()},
                         {"others", fmt::format("{:.1f} % of the machine", 100.0 * quiet.others)},
                         {"slowest_visit", fmt::format("{:.2f} times the fastest", quiet.slowest)},
                         {"visits", fmt::format("{}, {} repeated", quiet.visits, quiet.repeated)},
                         {"fit_errors", quality_text(qualities)},
                         {"noisy_visits", fmt::format("{} of {}", quiet.noisy, quiet.visits)}};
  return hardware;
}

}  // namespace

void calibrate_command(const RankOptions& options) {
  const CalibrationJobs jobs = jobs_of(options);
  CommunicatorOptions patience;
  patience.timeout = kLongestVisit;
  run_ranks(options.backend, static_cast<int>(jobs.world_size()), patience, [&](Communicator& world) {
    const CalibrationSamples samples = calibrate(jobs, world);
    if (world.rank() == 0) write_file(options.out, write_hardware(hardware_of(jobs, samples)));
  });
}

}  // namespace reckon
