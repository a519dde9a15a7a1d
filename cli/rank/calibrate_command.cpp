#include "cli/rank/calibrate_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <thread>

#include "cli/find_configs.h"
#include "cli/processor_name.h"
#include "cost_model/gemm_cost.h"
#include "cost_model/op_cost.h"
#include "cost_model/state_cost.h"
#include "plan/errors.h"
#include "plan/load_plan.h"
#include "plan/stage_sections.h"
#include "plan/step_documents.h"
#include "report/write_file.h"
#include "runtime/comm/make_communicator.h"
#include "runtime/train/calibration_run.h"
#include "runtime/train/input/executable.h"
#include "runtime/train/library_versions.h"
#include "runtime/train/statistics.h"

namespace reckon {
namespace {

constexpr Seconds kQuickBudget{10.0}, kFullBudget{40.0};

std::int64_t cores() {
  return std::max<std::int64_t>(1, std::thread::hardware_concurrency());
}

/// Stands in for a plan when none is given.
Plan default_plan(NumberFormat compute) {
  Plan plan;
  ModelSpec& model = plan.model;
  model.name = "calibration";
  model.layers = 2;
  model.hidden = 384;
  model.ffn_hidden = 1024;
  model.heads = 6;
  model.kv_heads = 2;
  model.head_dim = 64;
  model.vocabulary = 4096;
  plan.hardware.device.is_cpu = true;
  plan.batch = {256, 4, 4};
  plan.precision.compute = plan.activations.stored = compute;
  return plan;
}

/// `whole` receives those whose attention is sampled apart.
std::vector<Plan> plans_to_sample(const RankOptions& options, std::int64_t& ranks, std::vector<Plan>& whole) {
  std::vector<Plan> plans;
  if (options.plan.empty()) {
    if (ranks == 0) ranks = cores();
    plans = {default_plan(NumberFormat::fp32), default_plan(NumberFormat::bf16)};
  } else {
    Plan plan = load_plan(options.plan, options.overrides, find_configs());
    if (ranks == 0)
      ranks = std::min(plan.world_size(), cores());  // more ranks than cores take turns: their ops are not slower
    if (samples_attention_apart(plan, ranks)) whole = {plan};
    plans = {std::move(plan)};
  }
  for (Plan& plan : plans) {
    plan = sampled_plan(std::move(plan), ranks);
    require_executable(plan);
  }
  return plans;
}

Bytes machine_memory() {
  return Bytes(static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGE_SIZE));
}

/// Factor on FLOPs / peak that fits the measured products of one pass, and the spread around it.
OpFit gemm_fit(const std::vector<GemmSample>& samples, Pass pass, const DeviceSpec& device) {
  std::vector<double> factors;
  for (const GemmSample& s : samples) {
    if (s.pass != pass) continue;
    factors.push_back(s.seconds.value * device.peak.at(s.format).value / GemmShape{s.batch, s.m, s.n, s.k}.flops());
  }
  const double factor = median(factors);
  return {factor, 0.0, Seconds(0.0), spread(factors) / factor, Provenance::calibrated};
}

/// Factors that make the cost model's own formulas give what was measured.
class Fitter {
 public:
  Fitter(const std::vector<Plan>& plans, const CalibrationSamples& samples, HardwareSpec& hardware)
      : plans_(plans), samples_(samples), hardware_(hardware) {}

  void fit() {
    TimeConstants& time = hardware_.time;
    for (const Pass pass : {Pass::forward, Pass::input_gradient, Pass::weight_gradient})
      time.gemm[pass] = gemm_fit(samples_.gemms, pass, hardware_.device);
    time.attention_forward = attention_fit(false);
    time.attention_backward = attention_fit(true);
    time.memory_bound = memory_fit();
    time.optimizer = optimizer_fit();
  }

 private:
  static OpFit bytes_only(double factor, double error) {
    return {0.0, factor, Seconds(0.0), error, Provenance::calibrated};
  }

  template <class Use>
  void for_ops(OpKind kind, Use use) const {
    std::size_t next = 0;
    for (const Plan& plan : plans_)
      for (const Section section : {Section::embedding, Section::dense_layer, Section::head})
        for (const Op& op : section_ops(plan, section, planned_attention_work(plan)).ops) {
          const OpSample& sample = samples_.ops.at(next++);
          if (op.kind == kind) use(plan, op, sample);
        }
  }

  /// Of the plans' own attention where it was sampled apart, else as the sampled plans show it.
  OpFit attention_fit(bool backward) const {
    std::vector<double> factors;
    HardwareSpec unit = hardware_;
    unit.time.attention_forward = unit.time.attention_backward = {1.0, 0.0, Seconds(0.0), 0.1, Provenance::calibrated};
    const auto add = [&](const Op& op, NumberFormat format, Seconds seconds) {
      factors.push_back(seconds / attention_cost(unit, op.attention, 0.0, format, backward).seconds);
    };
    for (const AttentionSample& sample : samples_.attention)
      add(sample.op, sample.format, backward ? sample.backward : sample.forward);
    if (factors.empty())
      for_ops(OpKind::attention, [&](const Plan& plan, const Op& op, const OpSample& sample) {
        add(op, plan.precision.compute, backward ? sample.backward : sample.forward);
      });
    return {median(factors), 0.0, Seconds(0.0), 0.1, Provenance::calibrated};
  }

  OpFit memory_fit() const {
    double seconds = 0, bytes = 0;
    for_ops(OpKind::memory_bound, [&](const Plan&, const Op& op, const OpSample& sample) {
      seconds += sample.forward.value + sample.backward.value;
      bytes += static_cast<double>((op.forward_traffic + op.backward_traffic).value);
    });
    return bytes_only(seconds * hardware_.device.memory_bandwidth.value / bytes, 0.2);
  }

  OpFit optimizer_fit() const {
    std::vector<double> factors;
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      Plan plan = plans_[i];
      plan.hardware = hardware_;
      plan.hardware.time.optimizer = bytes_only(1.0, 0.1);
      const WeightElements weights = stage_weights(section_weights(plan), stage_sections(plan, 0));
      factors.push_back(samples_.optimizer[i] / optimizer_time(plan, weights));
    }
    return bytes_only(median(factors), 0.1);
  }

  const std::vector<Plan>& plans_;
  const CalibrationSamples& samples_;
  HardwareSpec& hardware_;
};

HardwareSpec hardware_of(const std::vector<Plan>& plans, const CalibrationSamples& samples, std::int64_t ranks) {
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
  hardware.time.launch = Seconds(0.0);  // in the measured ops
  hardware.time.overlap_compute_slowdown = hardware.time.overlap_communication_slowdown = 1.0;
  hardware.time.gemm_samples = samples.gemms;
  hardware.time.op_samples = samples.ops;
  hardware.time.collectives = samples.collectives;
  Fitter(plans, samples, hardware).fit();
  // Host, processor and date are added by `reckon calibrate`, which compares them later.
  hardware.provenance = {{"ranks", fmt::format("{}", ranks)}, {"libtorch", libtorch_version()}};
  return hardware;
}

}  // namespace

void calibrate_command(const RankOptions& options) {
  std::int64_t ranks = options.ranks;
  std::vector<Plan> attention_of;
  const std::vector<Plan> plans = plans_to_sample(options, ranks, attention_of);
  const Seconds budget = options.quick ? kQuickBudget : kFullBudget;
  run_ranks(options.backend, static_cast<int>(ranks), {}, [&](Communicator& world) {
    const CalibrationSamples samples = calibrate(plans, world, budget, attention_of);
    if (world.rank() == 0) write_file(options.out, write_hardware(hardware_of(plans, samples, ranks)));
  });
}

}  // namespace reckon
