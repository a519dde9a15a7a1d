#include "report/result_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "report/format_quantity.h"

namespace reckon {

namespace {

constexpr int kBarWidth = 16;
constexpr std::size_t kPlansShown = 10, kLongestCell = 20;

std::string value_of(const RankedPlan& plan, const std::string& key) {
  for (const auto& [name, value] : plan.overrides)
    if (name == key) return value;
  return "";
}

std::string last_word(const std::string& key) {
  return key.substr(key.rfind('.') + 1);
}

std::string shortened(const std::string& text) {
  return text.size() <= kLongestCell ? text : text.substr(0, kLongestCell - 3) + "...";
}

/// Keys of the plans' overrides, with the values that they have ("" where a plan leaves a key as it is).
struct KeyValues {
  std::string key;
  std::set<std::string> values;

  /// Too long for a cell, and the same wherever it is given: told once below the table.
  bool is_told_apart() const {
    std::size_t longest = 0;
    for (const std::string& value : values) longest = std::max(longest, value.size());
    return longest > kLongestCell && values.size() - values.count("") == 1;
  }
};

/// Of all plans, in the order of first appearance.
std::vector<KeyValues> keys_of(const std::vector<RankedPlan>& plans) {
  std::vector<KeyValues> keys;
  for (const RankedPlan& plan : plans)
    for (const auto& [key, value] : plan.overrides)
      if (std::none_of(keys.begin(), keys.end(), [&](const KeyValues& known) { return known.key == key; }))
        keys.push_back({key, {}});
  for (KeyValues& key : keys)
    for (const RankedPlan& plan : plans) key.values.insert(value_of(plan, key.key));
  return keys;
}

/// "parallel.expert=1 ..." of the keys that all plans agree on, and what those that store narrowly have besides.
std::string notes_below(const std::vector<KeyValues>& keys, const TextStyle& style) {
  std::string common, apart;
  for (const KeyValues& key : keys) {
    if (key.values.size() == 1) common += fmt::format(" {}={}", key.key, *key.values.begin());
    else if (key.is_told_apart())
      apart += fmt::format("where a format is stored: {}='{}'\n", key.key, *key.values.rbegin());
  }
  if (!common.empty()) common = wrapped("all of them:" + common) + "\n";
  if (!apart.empty()) apart = wrapped(apart.substr(0, apart.size() - 1)) + "\n";
  return common.empty() && apart.empty() ? "" : painted(common + apart, Paint::dim, style);
}

std::string plan_table(const std::string& title, const std::vector<RankedPlan>& all, double fastest,
                       const TextStyle& style) {
  if (all.empty()) return "";
  const std::vector<RankedPlan> plans(all.begin(), all.begin() + std::min(all.size(), kPlansShown));
  const std::vector<KeyValues> all_keys = keys_of(plans);
  std::vector<std::string> keys;  // what the table must show
  for (const KeyValues& key : all_keys)
    if (key.values.size() > 1 && !key.is_told_apart()) keys.push_back(key.key);
  std::vector<std::string> header = {"rank", "step", "tokens/s", "MFU", "GiB", "fits"};
  for (const std::string& key : keys) header.push_back(last_word(key));
  header.emplace_back("");
  std::vector<bool> left(header.size(), false);
  left.back() = true;
  Table table(header, left);
  for (const RankedPlan& plan : plans) {
    std::vector<Cell> row = {grouped(plan.rank), with_unit(plan.step), compact(plan.tokens_per_second_per_device),
                             percent(plan.mfu),  gib(plan.memory),     percent(plan.fit_probability, 0)};
    for (const std::string& key : keys) {
      const std::string value = value_of(plan, key);
      row.emplace_back(value.empty() ? "-" : shortened(value));
    }
    row.emplace_back(bar(fastest / plan.step.value, kBarWidth, style));
    table.add(row);
  }
  std::string text = painted(title, Paint::bold, style) + "\n" + table.text(style);
  if (plans.size() < all.size()) text += fmt::format("and {} more (--json lists all)\n", all.size() - plans.size());
  return text + notes_below(all_keys, style) + "\n";
}

std::string rejection_table(const std::vector<Rejection>& rejected, const TextStyle& style) {
  if (rejected.empty()) return "";
  Table table({"rejected", "plans"});
  for (const Rejection& rejection : rejected) table.add({rejection.reason, grouped(rejection.count)});
  return table.text(style) + "(--json has an example of each)\n";
}

/// The best plan with one knob turned: how much slower, how much smaller, or which rule forbids it.
std::string knob_table(const SearchResult& result, const TextStyle& style) {
  if (result.knobs.empty() || result.plans.empty()) return "";
  const RankedPlan& best = result.plans.front();
  Table table({"one step aside from the best", "step", "against it", "GiB", ""}, {true, false, false, false, true});
  for (const KnobStep& knob : result.knobs) {
    if (!knob.illegal.empty()) continue;
    table.add({knob.change, with_unit(knob.step), signed_percent(knob.step / best.step - 1), gib(knob.memory),
               Cell(knob.fits ? "" : "does not fit", Paint::bad)});
  }
  return table.text(style) + "\n";
}

std::string percent_or_dash(const std::optional<double>& share) {
  return share ? percent(*share) : "-";
}

std::string figure_or_dash(const std::optional<double>& figure) {
  return figure ? fmt::format("{:.3f}", *figure) : "-";
}

std::string error_line(const char* name, const ErrorStatistics& errors) {
  return fmt::format("  {:<8}n {}, mean |e| {}, bias {}, median {}, p95 {}, max {}, unbiased {}, coverage {}\n", name,
                     errors.n, percent_or_dash(errors.mape), percent_or_dash(errors.bias),
                     percent_or_dash(errors.median_abs), percent_or_dash(errors.p95_abs),
                     percent_or_dash(errors.max_abs), percent_or_dash(errors.mape_unbiased),
                     percent_or_dash(errors.coverage));
}

std::string counts_text(const std::map<std::string, std::int64_t>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, count);
  return text.empty() ? "none" : text;
}

std::string group_text(const ScoreGroup& group, const TextStyle& style) {
  std::string title = painted(group.group, Paint::bold, style);
  for (const auto& [column, value] : group.assume) title += fmt::format(" (assuming {} {})", column, value);
  const OrderStatistics& order = group.order;
  const OutOfMemoryCounts& oom = group.oom;
  std::string text = fmt::format("{}: {} of {} rows scored\n", title, group.scored, group.rows);
  text += error_line("time", group.step_time);
  text += error_line("memory", group.memory);
  text += fmt::format("  order   {} sets, Spearman {}, Kendall {}, regret mean {}, max {}\n", order.regret_groups,
                      figure_or_dash(order.spearman), figure_or_dash(order.kendall), percent_or_dash(order.regret_mean),
                      percent_or_dash(order.regret_max));
  text += fmt::format("  OOM     true fit {}, true OOM {}, false fit {}, false OOM {}, OOM picks {}\n", oom.true_fit,
                      oom.true_oom, oom.false_fit, oom.false_oom, oom.oom_picks);
  text += fmt::format("  skipped {}\n", counts_text(group.skipped));
  if (!group.assumptions.empty()) text += fmt::format("  assumed {}\n", counts_text(group.assumptions));
  return text;
}

std::string score_rows(const std::vector<ScoredRow>& rows, const TextStyle& style) {
  Table table({"row", "group", "run", "measured", "predicted", "error", "memory", "predicted", "error", "note"},
              {true, true, true, false, false, false, false, false, false, true});
  const auto seconds = [](const std::optional<double>& value) { return value ? with_unit(Seconds(*value)) : "-"; };
  const auto bytes = [](const std::optional<std::int64_t>& value) { return value ? with_unit(Bytes(*value)) : "-"; };
  const auto error = [](const std::optional<double>& value) { return value ? signed_percent(*value) : "-"; };
  for (const ScoredRow& row : rows) {
    table.add({grouped(row.row), row.group, row.run_id, seconds(row.measured_step_seconds),
               seconds(row.predicted_step_seconds), error(row.step_time_error), bytes(row.measured_memory_bytes),
               bytes(row.predicted_memory_bytes), error(row.memory_error), row.reason.value_or(row.predicted_outcome)});
  }
  return table.text(style);
}

}  // namespace

std::string search_text(const SearchResult& result, const TextStyle& style) {
  std::string text =
      fmt::format("{} plans, {} legal, {} fit into {}; searched in {} ({} plans/s)\n", grouped(result.enumerated),
                  grouped(result.legal), grouped(result.fits), with_unit(result.memory_limit),
                  with_unit(result.seconds), compact(result.plans_per_second));
  if (result.refused_by_slack > 0)
    text += fmt::format("{} of those looked at closely do not fit with the allocator's slack\n",
                        grouped(result.refused_by_slack));
  text += "\n";
  const double fastest = result.plans.empty() ? 0 : result.plans.front().step.value;
  text += plan_table("fastest plans that fit", result.plans, fastest, style);
  text += plan_table("Pareto set: less memory only for more time", result.pareto, fastest, style);
  if (!result.bound_by.empty()) text += wrapped("the best plan is bound by: " + result.bound_by) + "\n\n";
  return text + knob_table(result, style) + rejection_table(result.rejected, style);
}

std::string reproduction_text(const ReproductionResult& result, const TextStyle& style) {
  std::set<std::string> quantities;
  for (const ReproducedRow& row : result.rows)
    for (const auto& [quantity, value] : row.published) quantities.insert(quantity);
  std::vector<std::string> header = {result.paper};
  for (const std::string& quantity : quantities) header.insert(header.end(), {quantity, "predicted", "error"});
  header.emplace_back("");
  Table table(header);
  const auto figure = [](const std::map<std::string, double>& values, const std::string& quantity, auto text_of) {
    const auto value = values.find(quantity);
    return value == values.end() ? std::string("-") : text_of(value->second);
  };
  const auto plain = [](double value) { return fmt::format("{:.4g}", value); };
  for (const ReproducedRow& row : result.rows) {
    std::vector<Cell> cells = {row.system};
    for (const std::string& quantity : quantities) {
      cells.emplace_back(figure(row.published, quantity, plain));
      cells.emplace_back(figure(row.predicted, quantity, plain));
      cells.emplace_back(figure(row.error, quantity, signed_percent));
    }
    cells.emplace_back(row.fitted ? "fitted" : "");
    table.add(cells);
  }
  std::string text = table.text(style) + "\n";
  for (const FittedConstant& constant : result.fitted)
    text +=
        fmt::format("{}: {} = {:.6g}{}\n", constant.rows.empty() ? "assumed" : "fitted", constant.constant,
                    constant.value, constant.rows.empty() ? "" : fmt::format(" on {}", fmt::join(constant.rows, ", ")));
  for (const auto& [name, value] : result.summary) text += fmt::format("{}: {:.4g}\n", name, value);
  return text;
}

std::string score_text(const ScoreResult& result, bool with_rows, const TextStyle& style) {
  std::string text = fmt::format("{}: {} of {} rows scored\n", result.file, result.rows_scored, result.rows_read);
  for (const std::string& override_text : result.overrides) text += "with " + override_text + "\n";
  for (const ScoreGroup& group : result.groups) text += "\n" + group_text(group, style);
  if (with_rows) text += "\n" + score_rows(result.rows, style);
  return text;
}

}  // namespace reckon
