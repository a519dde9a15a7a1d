#include "report/write_console.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plan/lossy_change.h"
#include "plan/memory_fields.h"
#include "report/format_quantity.h"
#include "report/profile_json.h"
#include "report/write_budget.h"

namespace reckon {

namespace {

// A plan fits on a screen of 80 columns and 50 lines.
constexpr std::size_t kStageColumns = 56;  // beside the names of the components
constexpr std::size_t kComponentsShown = 8;
constexpr std::size_t kTrafficShown = 6;
constexpr std::size_t kAssumptionsShown = 2;
constexpr int kBarWidth = 20, kSmallBarWidth = 14, kGaugeWidth = 60;

/// The fullest stages, as many as fit side by side, in stage order.
std::vector<const StageProfile*> stages_to_show(const std::vector<StageProfile>& stages) {
  std::vector<const StageProfile*> shown;
  for (const StageProfile& stage : stages) shown.push_back(&stage);
  std::stable_sort(shown.begin(), shown.end(),
                   [](const auto* a, const auto* b) { return a->memory.device_used > b->memory.device_used; });
  const std::size_t column = fmt::formatted_size("  stage {}", stages.size() - 1);
  shown.resize(std::min(shown.size(), kStageColumns / column));
  std::sort(shown.begin(), shown.end(), [](const auto* a, const auto* b) { return a->stage < b->stage; });
  return shown;
}

std::string bits_text(const std::vector<int>& bits) {
  return bits.empty() ? "-" : fmt::format("{}", fmt::join(bits, ","));
}

std::string stage_table(const StepProfile& profile, const TextStyle& style) {
  const auto shown = stages_to_show(profile.stages);
  std::vector<std::string> header = {"memory by stage, GiB"};
  for (const StageProfile* stage : shown) header.push_back(fmt::format("stage {}", stage->stage));
  Table table(header);
  const auto add = [&](const std::string& name, Paint paint, auto text_of) {
    std::vector<Cell> row = {Cell(name, paint)};
    for (const StageProfile* stage : shown) row.emplace_back(text_of(*stage), paint);
    table.add(row);
  };
  add("layers (recomputed)", Paint::plain,
      [](const StageProfile& stage) { return fmt::format("{} ({})", stage.layers, stage.recomputed_layers); });
  add("micro-batches in flight", Paint::plain,
      [](const StageProfile& stage) { return fmt::format("{:.3g}", stage.in_flight); });
  add("activation bits", Paint::plain, [](const StageProfile& stage) { return bits_text(stage.activation_bits); });
  for (const MemoryField& line : kMemoryFields) {
    const bool used = std::any_of(shown.begin(), shown.end(),
                                  [&](const StageProfile* stage) { return (stage->memory.*line.bytes).value != 0; });
    if (used)
      add(line.words(), line.kind == MemoryFieldKind::sum ? Paint::bold : Paint::plain,
          [&](const StageProfile& stage) { return gib(stage.memory.*line.bytes); });
  }
  std::string text = table.text(style);
  if (shown.size() < profile.stages.size())
    text += fmt::format("(the {} fullest of {} stages)\n", shown.size(), profile.stages.size());
  return text;
}

std::string time_table(const StepProfile& profile, const TextStyle& style) {
  std::vector<TimeComponent> components = profile.time;
  std::stable_sort(components.begin(), components.end(),
                   [](const auto& a, const auto& b) { return a.exposed_seconds > b.exposed_seconds; });
  Table table({"time of a step", "busy", "exposed", "share", ""}, {true, false, false, false, true});
  const auto add = [&](const std::string& name, Seconds busy, Seconds exposed) {
    const double share = exposed / profile.step.seconds;
    table.add({name, with_unit(busy), with_unit(exposed), percent(share), bar(share, kBarWidth, style)});
  };
  Seconds rest_busy, rest_exposed;
  for (std::size_t i = 0; i < components.size(); ++i) {
    if (i < kComponentsShown || components.size() == kComponentsShown + 1) {
      add(components[i].component, components[i].seconds, components[i].exposed_seconds);
    } else {
      rest_busy += components[i].seconds;
      rest_exposed += components[i].exposed_seconds;
    }
  }
  if (components.size() > kComponentsShown + 1)
    add(fmt::format("{} more components", components.size() - kComponentsShown), rest_busy, rest_exposed);
  return table.text(style);
}

std::string verdict_amounts(const Verdict& verdict) {
  std::string text =
      fmt::format("needs {} of {} on rank {}", with_unit(verdict.need), with_unit(verdict.limit), verdict.worst_rank);
  if (verdict.fits) return text + fmt::format(" (probability {})", percent(verdict.probability, 0));
  if (verdict.breaks) text += fmt::format("; the limit is crossed by: {}", *verdict.breaks);
  return text;
}

std::string nearest_fit(const Verdict& verdict) {
  if (verdict.nearest.empty()) return "";
  const std::string text = "nearest plan that fits: " + verdict.nearest;
  return changes_gradients(verdict.nearest) ? fmt::format("{} ({})", text, kGradientsChange) : text;
}

/// On a terminal: how much of the limit is needed.
std::string gauge(const Verdict& verdict, const TextStyle& style) {
  if (!style.bars || verdict.limit.value <= 0) return "";
  const double share = verdict.need / verdict.limit;
  return fmt::format("{} {} of the limit\n",
                     painted(bar(share, kGaugeWidth, style), verdict.fits ? Paint::good : Paint::bad, style),
                     percent(share, 0));
}

std::string verdict_line(const Verdict& verdict, const TextStyle& style) {
  const Paint paint = verdict.fits ? Paint::good : Paint::bad;
  // Wrapped as one text, then painted: the words before the colon are the verdict.
  const std::string text =
      wrapped(std::string(verdict.fits ? "FITS" : "DOES NOT FIT") + ": " + verdict_amounts(verdict));
  const std::size_t colon = text.find(':');
  return painted(text.substr(0, colon), paint, style) + text.substr(colon) + "\n" + gauge(verdict, style) +
         (verdict.nearest.empty() ? "" : wrapped(nearest_fit(verdict)) + "\n");
}

std::string step_lines(const StepSummary& step) {
  std::string text = fmt::format("step {}", with_unit(step.seconds));
  if (step.interval_high > step.interval_low)
    text += fmt::format(" ({} to {} in 80 % of cases)", with_unit(step.interval_low), with_unit(step.interval_high));
  text += fmt::format(", {} tokens/s per device", compact(step.tokens_per_second_per_device));
  if (step.useful_tokens != step.tokens)
    text += fmt::format(" ({} useful)", compact(step.useful_tokens_per_second_per_device));
  text = wrapped(text);
  text += fmt::format("\nMFU {}, HFU {} ({} FLOPs), pipeline bubble {}\n", percent(step.mfu), percent(step.hfu),
                      step.flop_convention, percent(step.bubble_fraction));
  return text;
}

std::string packing_lines(const StepProfile& profile) {
  const PackingSummary& packing = profile.packing;
  if (profile.plan.documents.source == "single") return "";
  const std::string cut =
      packing.documents_cut > 0 ? fmt::format(", {} of them cut", grouped(packing.documents_cut)) : "";
  return wrapped(fmt::format(
             "packing: {} documents a step{}; {} real tokens; attention costs as with documents of {:.0f} tokens, the "
             "heaviest row {:.2f} x the mean; placement {}",
             grouped(packing.documents), cut, percent(packing.real_token_share), packing.mean_square_length,
             packing.row_imbalance, packing.placement)) +
         "\n";
}

std::string traffic_table(const std::vector<TrafficEntry>& traffic, const TextStyle& style) {
  if (traffic.empty()) return "";
  std::vector<TrafficEntry> largest = traffic;
  std::stable_sort(largest.begin(), largest.end(),
                   [](const auto& a, const auto& b) { return a.bytes_per_rank > b.bytes_per_rank; });
  const std::size_t shown = std::min(largest.size(), kTrafficShown);
  const double most = static_cast<double>(std::max<std::int64_t>(1, largest.front().bytes_per_rank));
  Table table({"traffic of a step", "collective", "dtype", "calls", "sent by a rank", ""},
              {true, true, true, false, false, true});
  for (std::size_t i = 0; i < shown; ++i) {
    const TrafficEntry& entry = largest[i];
    table.add({entry.group, entry.collective, entry.dtype, grouped(entry.calls), with_unit(Bytes(entry.bytes_per_rank)),
               bar(static_cast<double>(entry.bytes_per_rank) / most, kSmallBarWidth, style)});
  }
  const std::size_t more = largest.size() - shown;
  return table.text(style) + (more > 0 ? fmt::format("and {} smaller (--json lists all)\n", more) : "") + "\n";
}

std::string assumption_lines(const std::vector<std::string>& assumptions, const TextStyle& style) {
  std::string text;
  for (std::size_t i = 0; i < std::min(assumptions.size(), kAssumptionsShown); ++i)
    text += painted(wrapped("assumed: " + assumptions[i]), Paint::dim, style) + "\n";
  if (assumptions.size() > kAssumptionsShown) {
    const std::size_t more = assumptions.size() - kAssumptionsShown;
    text += painted(fmt::format("and {} more assumption{} (--json lists all)", more, more == 1 ? "" : "s"), Paint::dim,
                    style) +
            "\n";
  }
  return text;
}

}  // namespace

std::string verdict_sentence(const Verdict& verdict) {
  const std::string sentence =
      (verdict.fits ? "the plan fits: " : "the plan does not fit: ") + verdict_amounts(verdict);
  return verdict.nearest.empty() ? sentence : sentence + "; " + nearest_fit(verdict);
}

std::string profile_title(const StepProfile& profile) {
  const HardwareSpec& hardware = profile.plan.hardware;
  return fmt::format("{} on {} x {}", profile.plan.model.name, profile.world_size,
                     hardware.device.name.empty() ? hardware.name : hardware.device.name);
}

std::string plan_degrees(const StepProfile& profile) {
  const Plan& plan = profile.plan;
  const ParallelSpec& parallel = plan.parallel;
  std::string degrees;
  const auto add_degree = [&](const char* name, std::int64_t degree) {
    if (degree > 1) degrees += fmt::format("{}{} {}", degrees.empty() ? "" : " x ", name, degree);
  };
  add_degree("data", parallel.data);
  add_degree("pipeline", parallel.pipeline);
  add_degree("tensor", parallel.tensor);
  add_degree("ulysses", parallel.ulysses);
  add_degree("ring", parallel.ring);
  if (degrees.empty()) degrees = "one rank";
  if (parallel.expert > 1) degrees += fmt::format(", expert {}", parallel.expert);
  if (parallel.sequence) degrees += ", sequence parallel";
  degrees += fmt::format(", ZeRO-{}", parallel.zero);
  return fmt::format("{}; {} micro-batch{} of {} x {} tokens a replica, {}", degrees, plan.micro_batches(),
                     plan.micro_batches() == 1 ? "" : "es", plan.batch.micro_batch, plan.batch.sequence_length,
                     name_of(plan.precision.compute));
}

std::string plan_summary(const StepProfile& profile) {
  const HardwareSpec& hardware = profile.plan.hardware;
  return fmt::format("{}, {} parameters, on {} x {}\n{}\n", profile.plan.model.name,
                     compact(static_cast<double>(profile.parameters)), profile.world_size,
                     hardware.device.name.empty() ? hardware.name : hardware.device.name,
                     wrapped(plan_degrees(profile)));
}

std::string profile_text(const StepProfile& profile, const TextStyle& style) {
  return fmt::format("{}\n{}{}\n{}\n{}\n{}{}{}", plan_summary(profile), verdict_line(profile.verdict, style),
                     step_lines(profile.step) + packing_lines(profile), stage_table(profile, style),
                     time_table(profile, style), traffic_table(profile.traffic, style),
                     assumption_lines(profile.assumptions, style),
                     profile.budget ? "\n" + budget_text(*profile.budget, style) : "");
}

}  // namespace reckon
