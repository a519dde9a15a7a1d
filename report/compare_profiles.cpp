#include "report/compare_profiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "plan/errors.h"
#include "plan/memory_fields.h"
#include "report/profile_json.h"

namespace reckon {

namespace {

constexpr int kSides = 3;  // predicted, simulated, measured
constexpr int kPredicted = 0, kSimulated = 1, kMeasured = 2;

using Sides = std::array<std::optional<double>, kSides>;

/// Rows in order of first appearance; the same quantity from several sides meets in one row.
class RowTable {
 public:
  void add(int side, const std::string& quantity, Aspect aspect, Unit unit, double value) {
    auto row = std::find_if(rows_.begin(), rows_.end(), [&](const auto& r) { return r.quantity == quantity; });
    if (row == rows_.end()) row = rows_.insert(rows_.end(), {quantity, aspect, unit, {}, {}, {}, {}, {}, {}});
    std::optional<double>& cell = side == kPredicted   ? row->predicted
                                  : side == kSimulated ? row->simulated
                                                       : row->measured;
    cell = cell.value_or(0.0) + value;  // entries with one name (say, one collective of two buckets) add up
  }
  void set_spread(const std::string& quantity, Seconds spread) {
    for (ComparisonRow& row : rows_)
      if (row.quantity == quantity && spread.value > 0) row.spread = spread.value;
  }
  std::vector<ComparisonRow> take() { return std::move(rows_); }

 private:
  std::vector<ComparisonRow> rows_;
};

std::string stage_quantity(const StageProfile& stage, std::string_view component) {
  return fmt::format("memory.stage{}.{}", stage.stage, component);
}

void add_totals(RowTable& table, int side, const StepProfile& profile) {
  const StepSummary& step = profile.step;
  table.add(side, "step.seconds", Aspect::total, Unit::seconds, step.seconds.value);
  table.add(side, "step.tokens_per_second_per_device", Aspect::total, Unit::rate, step.tokens_per_second_per_device);
  if (std::isfinite(step.mfu)) table.add(side, "step.mfu", Aspect::total, Unit::share, step.mfu);
  for (const StageProfile& stage : profile.stages) {
    const double peak = static_cast<double>(stage.memory.peak_allocated.value);
    table.add(side, stage_quantity(stage, "peak_allocated"), Aspect::total, Unit::bytes, peak);
  }
}

void add_time(RowTable& table, int side, const StepProfile& profile) {
  for (const TimeComponent& time : profile.time)
    table.add(side, "time." + time.component, Aspect::time, Unit::seconds, time.exposed_seconds.value);
}

void add_memory(RowTable& table, int side, const StepProfile& profile) {
  for (const StageProfile& stage : profile.stages) {
    for (const MemoryField& field : kMemoryFields)
      if (field.kind == MemoryFieldKind::allocated)
        table.add(side, stage_quantity(stage, field.name), Aspect::memory, Unit::bytes,
                  static_cast<double>((stage.memory.*field.bytes).value));
  }
}

void add_traffic(RowTable& table, int side, const StepProfile& profile) {
  for (const TrafficEntry& entry : profile.traffic) {
    const std::string name = fmt::format("traffic.{}.{}.{}", entry.group, entry.collective, entry.dtype);
    table.add(side, name + ".bytes_per_rank", Aspect::traffic, Unit::bytes, static_cast<double>(entry.bytes_per_rank));
    table.add(side, name + ".calls", Aspect::traffic, Unit::calls, static_cast<double>(entry.calls));
  }
}

std::optional<double> relative_error(std::optional<double> predicted, std::optional<double> measured) {
  if (!predicted || !measured) return std::nullopt;
  if (*predicted == *measured) return 0.0;
  if (*measured == 0.0) return std::nullopt;
  return (*predicted - *measured) / *measured;
}

/// The measured total that a component is a part of: its stage's peak, or the step time.
std::optional<double> measured_total(const std::vector<ComparisonRow>& rows, const ComparisonRow& part) {
  std::string total = "step.seconds";
  if (part.aspect == Aspect::memory) total = part.quantity.substr(0, part.quantity.rfind('.')) + ".peak_allocated";
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.quantity == total; });
  return row == rows.end() ? std::nullopt : row->measured;
}

void fill_errors(std::vector<ComparisonRow>& rows) {
  for (ComparisonRow& row : rows) {
    row.error = relative_error(row.predicted, row.measured);
    if (row.aspect != Aspect::time && row.aspect != Aspect::memory) continue;
    const auto total = measured_total(rows, row);
    if (total && *total > 0) row.blame = (row.predicted.value_or(0.0) - row.measured.value_or(0.0)) / *total;
  }
}

/// Total and traffic: largest |error|. Time and memory: the component that adds most to the error of its total.
std::vector<WorstRow> worst_rows(const std::vector<ComparisonRow>& rows) {
  std::vector<WorstRow> worst;
  for (Aspect aspect : {Aspect::total, Aspect::time, Aspect::memory, Aspect::traffic}) {
    WorstRow found{aspect, {}, 0.0};
    for (const ComparisonRow& row : rows) {
      const std::optional<double> error = row.blame ? row.blame : row.error;
      const bool worse = error && (found.quantity.empty() || std::abs(*error) > std::abs(found.error));
      if (row.aspect == aspect && worse) found = {aspect, row.quantity, *error};
    }
    if (!found.quantity.empty()) worst.push_back(found);
  }
  return worst;
}

void check_same_work(const StepProfile& predicted, const StepProfile& other) {
  const auto differ = [](std::string_view what, const auto& a, const auto& b) {
    throw ConfigError(
        fmt::format("the profiles do not belong together: {} is {} in one and {} in the other", what, a, b));
  };
  if (predicted.parameters != other.parameters)
    differ("the number of parameters", predicted.parameters, other.parameters);
  if (predicted.world_size != other.world_size) differ("the world size", predicted.world_size, other.world_size);
  if (predicted.step.tokens != other.step.tokens)
    differ("the tokens of a step", predicted.step.tokens, other.step.tokens);
}

bool covers(const Tolerance& tolerance, const ComparisonRow& row) {
  if (tolerance.quantity.empty())
    return row.aspect == Aspect::total && (row.unit == Unit::seconds || row.unit == Unit::bytes);
  return row.quantity == tolerance.quantity || row.quantity.starts_with(tolerance.quantity + ".");
}

}  // namespace

std::string_view name_of(Aspect aspect) {
  switch (aspect) {
    case Aspect::total: return "total";
    case Aspect::time: return "time";
    case Aspect::memory: return "memory";
    case Aspect::traffic: return "traffic";
  }
  return "?";
}

std::string_view name_of(Unit unit) {
  switch (unit) {
    case Unit::seconds: return "seconds";
    case Unit::bytes: return "bytes";
    case Unit::calls: return "calls";
    case Unit::rate: return "tokens_per_second";
    case Unit::share: return "share";
  }
  return "?";
}

ProfileComparison compare_profiles(const StepProfile& predicted, const std::optional<StepProfile>& simulated,
                                   const StepProfile& measured) {
  check_same_work(predicted, measured);
  if (simulated) check_same_work(predicted, *simulated);
  const std::array<const StepProfile*, kSides> sides = {&predicted, simulated ? &*simulated : nullptr, &measured};

  RowTable table;
  for (auto add : {add_totals, add_time, add_memory, add_traffic})
    for (int side = 0; side < kSides; ++side)
      if (sides[side]) add(table, side, *sides[side]);
  for (const TimeComponent& time : measured.time) table.set_spread("time." + time.component, time.spread);
  const Seconds step_spread = (measured.step.interval_high - measured.step.interval_low) / 2.0;
  table.set_spread("step.seconds", step_spread);

  ProfileComparison comparison;
  for (const StepProfile* side : sides) comparison.columns.emplace_back(side ? name_of(side->source) : "");
  comparison.rows = table.take();
  fill_errors(comparison.rows);
  comparison.worst = worst_rows(comparison.rows);
  return comparison;
}

std::vector<ComparisonRow> rows_beyond(const ProfileComparison& comparison, const std::vector<Tolerance>& tolerances) {
  std::vector<ComparisonRow> beyond;
  for (const Tolerance& tolerance : tolerances) {
    int covered = 0;
    for (const ComparisonRow& row : comparison.rows) {
      if (!covers(tolerance, row)) continue;
      ++covered;
      if (!row.error || std::abs(*row.error) > tolerance.limit) beyond.push_back(row);
    }
    if (covered == 0) {
      throw ConfigError(fmt::format("--tolerance: no row is named {}; see the quantities of `reckon compare --json`",
                                    tolerance.quantity));
    }
  }
  return beyond;
}

}  // namespace reckon
