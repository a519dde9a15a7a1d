#include "tests/support/totals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>

namespace reckon::test {

namespace {

using Json = nlohmann::json;

class Totals {
 public:
  std::vector<std::string> broken;

  void holds(bool condition, const std::string& what) {
    if (!condition) broken.push_back(what + " does not hold");
  }
  void equal(std::int64_t left, std::int64_t right, const std::string& what) {
    if (left != right) broken.push_back(fmt::format("{}: {} is not {}", what, left, right));
  }
  /// Sums of some hundreds of doubles: 1e-9 of the larger side, or of `scale` where differences are summed.
  void near(double left, double right, const std::string& what, double scale = 0) {
    const double allowed = 1e-9 * std::max({std::abs(left), std::abs(right), scale});
    if (!(std::abs(left - right) <= allowed)) broken.push_back(fmt::format("{}: {} is not {}", what, left, right));
  }
};

double sum(const Json& list, const char* key) {
  double total = 0;
  for (const Json& entry : list) total += entry.at(key).is_null() ? 0.0 : entry.at(key).get<double>();
  return total;
}

std::int64_t count(const Json& list, const char* key) {
  std::int64_t total = 0;
  for (const Json& entry : list) total += entry.at(key).is_null() ? 0 : entry.at(key).get<std::int64_t>();
  return total;
}

std::int64_t sum_of(const Json& object, const std::vector<const char*>& keys) {
  std::int64_t total = 0;
  for (const char* key : keys) total += object.at(key).get<std::int64_t>();
  return total;
}

void check_memory(const Json& profile, Totals& totals) {
  std::int64_t need = 0, layers = 0;
  std::set<std::int64_t> worst_ranks;
  for (const Json& stage : profile.at("stages")) {
    const Json& memory = stage.at("memory");
    const std::string where = fmt::format("stage {}", stage.at("stage").dump());
    totals.equal(sum_of(memory, {"parameters", "gradients", "optimizer", "activations", "transient", "communication"}),
                 memory.at("peak_allocated"), where + ": components and peak_allocated");
    totals.equal(sum_of(memory, {"peak_allocated", "allocator_slack", "communicators", "context"}),
                 memory.at("device_used"), where + ": peak, slack, communicators, context and device_used");
    need = std::max(need, memory.at("device_used").get<std::int64_t>() - memory.at("context").get<std::int64_t>());
    layers += stage.at("layers").get<std::int64_t>();
    worst_ranks.insert(stage.at("worst_rank").get<std::int64_t>());
    totals.holds(stage.at("recomputed_layers") <= stage.at("layers"), where + ": recomputed_layers <= layers");
  }
  totals.equal(layers, profile.at("plan").at("model").at("layers"), "layers of the stages and of the model");
  const Json& verdict = profile.at("verdict");
  if (profile.at("source") == "predicted") {  // a simulation ends at the limit
    totals.equal(need, verdict.at("need_bytes"), "largest device_used less context and need_bytes");
    totals.holds(verdict.at("fits") == (verdict.at("need_bytes") <= verdict.at("limit_bytes")),
                 "fits == (need_bytes <= limit_bytes)");
  }
  totals.holds(verdict.at("fits") == verdict.at("breaks").is_null(), "fits == (breaks is null)");
  totals.holds(worst_ranks.contains(verdict.at("worst_rank").get<std::int64_t>()), "worst_rank is one of a stage");
}

void check_profile(const Json& profile, Totals& totals) {
  const Json &step = profile.at("step"), &plan = profile.at("plan"), &model = profile.at("model");
  const double seconds = step.at("seconds"), world = profile.at("world_size");
  totals.near(sum(profile.at("time"), "exposed_seconds"), seconds, "exposed_seconds and step.seconds");
  std::set<std::string> names;
  for (const Json& time : profile.at("time"))
    totals.holds(names.insert(time.at("component")).second, "one entry for " + time.at("component").dump());
  totals.holds(step.at("interval_seconds")[0] <= seconds && seconds <= step.at("interval_seconds")[1],
               "interval_seconds around seconds");

  const Json& parallel = plan.at("parallel");
  totals.equal(parallel.at("data").get<std::int64_t>() * parallel.at("pipeline").get<std::int64_t>() *
                   parallel.at("tensor").get<std::int64_t>() * parallel.at("ulysses").get<std::int64_t>() *
                   parallel.at("ring").get<std::int64_t>(),
               profile.at("world_size"), "product of the degrees and world_size");
  totals.equal(static_cast<std::int64_t>(profile.at("stages").size()), parallel.at("pipeline"), "stages and pipeline");

  const double tokens = step.at("tokens"), useful = step.at("useful_tokens");
  totals.near(plan.at("batch").at("global_batch").get<double>() * plan.at("batch").at("sequence_length").get<double>(),
              tokens, "global_batch x sequence_length and tokens");
  totals.near(step.at("tokens_per_second_per_device").get<double>() * seconds * world, tokens, "rate and tokens");
  totals.near(step.at("useful_tokens_per_second_per_device").get<double>() * seconds * world, useful,
              "useful rate and useful_tokens");
  totals.holds(std::abs(profile.at("packing").at("real_token_share").get<double>() * tokens - useful) <= 1,
               "real_token_share x tokens == useful_tokens, rounded to a whole token");
  totals.holds(step.at("mfu").is_null() || step.at("mfu") <= step.at("hfu"), "mfu <= hfu");
  totals.holds(model.at("active_parameters") <= model.at("parameters"), "active_parameters <= parameters");
  for (const Json& traffic : profile.at("traffic"))
    totals.holds((traffic.at("calls") == 0) == (traffic.at("bytes_per_rank") == 0), "calls with bytes");
  check_memory(profile, totals);
}

/// Ranks 1, 2, ... by step time.
void check_ranking(const Json& plans, const std::string& name, Totals& totals) {
  for (std::size_t i = 0; i < plans.size(); ++i) {
    totals.equal(plans[i].at("rank"), static_cast<std::int64_t>(i) + 1, name + " are ranked");
    if (i > 0) totals.holds(plans[i - 1].at("step_seconds") <= plans[i].at("step_seconds"), name + " by step time");
  }
}

void check_search(const Json& search, Totals& totals) {
  std::int64_t illegal = 0, too_large = 0;
  for (const Json& rejection : search.at("rejected"))
    (rejection.at("reason").get<std::string>().starts_with("does not fit") ? too_large : illegal) +=
        rejection.at("count").get<std::int64_t>();
  totals.equal(search.at("legal").get<std::int64_t>() + illegal, search.at("enumerated"),
               "legal, rejected for a rule and enumerated");
  totals.equal(search.at("fits").get<std::int64_t>() + too_large, search.at("legal"),
               "fits, rejected for memory and legal");
  totals.holds(static_cast<std::int64_t>(search.at("plans").size()) <= search.at("fits"), "no more plans than fit");
  check_ranking(search.at("plans"), "plans", totals);
  check_ranking(search.at("pareto"), "the Pareto set", totals);
  for (std::size_t i = 1; i < search.at("pareto").size(); ++i)
    totals.holds(search.at("pareto")[i].at("memory_bytes") < search.at("pareto")[i - 1].at("memory_bytes"),
                 "the Pareto set falls in memory");
}

/// The column's components add up to its totals: times to the step, memory to its stage's peak.
void check_column(const Json& comparison, const std::string& column, Totals& totals) {
  std::map<std::string, double> parts;
  for (const Json& row : comparison.at("rows")) {
    if (row.at(column).is_null()) continue;
    const std::string quantity = row.at("quantity");
    if (row.at("aspect") == "time") parts["step.seconds"] += row.at(column).get<double>();
    if (row.at("aspect") == "memory")
      parts[quantity.substr(0, quantity.rfind('.')) + ".peak_allocated"] += row.at(column).get<double>();
  }
  for (const Json& row : comparison.at("rows"))
    if (const auto part = parts.find(row.at("quantity")); part != parts.end() && !row.at(column).is_null())
      totals.near(part->second, row.at(column), column + " " + part->first);
}

void check_comparison(const Json& comparison, Totals& totals) {
  for (const char* column : {"predicted", "simulated", "measured"}) check_column(comparison, column, totals);
  for (const Json& row : comparison.at("rows")) {
    const Json &predicted = row.at("predicted"), &measured = row.at("measured"), &error = row.at("error");
    if (error.is_null()) {
      totals.holds(predicted.is_null() || measured.is_null() || measured == 0, "no error of " + row.dump());
    } else {
      totals.near(measured.get<double>() * (1 + error.get<double>()), predicted,
                  "error of " + row.at("quantity").dump());
    }
  }
}

void check_statistics(const Json& statistics, const std::string& where, Totals& totals) {
  const auto ordered = [&](const char* small, const char* large) {
    if (statistics.at(small).is_null()) return totals.equal(statistics.at("n"), 0, where + ": " + small + " of none");
    totals.holds(statistics.at(small).get<double>() <= statistics.at(large).get<double>() * (1 + 1e-12),
                 fmt::format("{}: {} <= {}", where, small, large));
  };
  ordered("median_abs", "p95_abs");
  ordered("p95_abs", "max_abs");
  ordered("mape", "max_abs");
  ordered("bias", "mape");
}

void check_group(const Json& group, Totals& totals) {
  const std::string where = fmt::format("group {} {}", group.at("group").dump(), group.at("assume").dump());
  const std::int64_t scored = group.at("scored");
  std::int64_t skipped = 0;
  for (const auto& [reason, rows] : group.at("skipped").items()) skipped += rows.get<std::int64_t>();
  totals.equal(scored + skipped, group.at("rows"), where + ": scored, skipped and rows");
  const Json &oom = group.at("oom"), &unmeasured = group.at("unmeasured");
  totals.equal(sum_of(oom, {"true_fit", "true_oom", "false_fit", "false_oom"}), scored,
               where + ": outcomes and scored");
  totals.equal(group.at("step_time").at("n").get<std::int64_t>() + sum_of(unmeasured, {"time", "tflops_only"}), scored,
               where + ": times compared, not measured and scored");
  totals.equal(group.at("memory").at("n").get<std::int64_t>() + sum_of(unmeasured, {"memory"}), scored,
               where + ": memory compared, not measured and scored");
  for (const auto& [column, rows] : group.at("assumptions").items())
    totals.holds(rows <= scored, where + ": no more assumptions than rows for " + column);
  check_statistics(group.at("step_time"), where + " step_time", totals);
  check_statistics(group.at("memory"), where + " memory", totals);
}

/// The groups' errors once more, from the rows.
void check_rows(const Json& score, Totals& totals) {
  using Group = std::pair<std::string, std::string>;
  std::map<Group, std::vector<double>> times;
  std::map<Group, std::int64_t> scored;
  std::set<std::int64_t> read, used;
  for (const Json& row : score.at("rows")) {
    const Group group{row.at("group"), row.at("assume").dump()};
    read.insert(row.at("row").get<std::int64_t>());
    totals.holds((row.at("status") == "skipped") == row.at("reason").is_string(), "a reason of each skipped row");
    if (row.at("status") != "scored") continue;
    used.insert(row.at("row").get<std::int64_t>());
    ++scored[group];
    const Json& error = row.at("error").at("step_time");
    if (!error.is_null()) times[group].push_back(error);
  }
  totals.equal(static_cast<std::int64_t>(read.size()), score.at("rows_read"), "rows and rows_read");
  totals.equal(static_cast<std::int64_t>(used.size()), score.at("rows_scored"), "scored rows and rows_scored");
  for (const Json& group : score.at("groups")) {
    const Group name{group.at("group"), group.at("assume").dump()};
    totals.equal(scored[name], group.at("scored"), "scored rows of group " + name.first);
    const std::vector<double>& errors = times[name];
    totals.equal(static_cast<std::int64_t>(errors.size()), group.at("step_time").at("n"),
                 "times of group " + name.first);
    if (errors.empty()) continue;
    double absolute = 0, plain = 0;
    for (const double error : errors) absolute += std::abs(error), plain += error;
    const auto n = static_cast<double>(errors.size());
    totals.near(absolute / n, group.at("step_time").at("mape"), "mape of group " + name.first);
    totals.near(plain / n, group.at("step_time").at("bias"), "bias of group " + name.first, 1);
  }
}

void check_score(const Json& score, Totals& totals) {
  for (const Json& group : score.at("groups")) check_group(group, totals);
  if (score.contains("rows")) check_rows(score, totals);
}

void check_explanation(const Json& explanation, Totals& totals) {
  if (explanation.at("about") == "difference") {
    const double scale = explanation.at("scale"), first = explanation.at("first").at("step_seconds"),
                 second = scale * explanation.at("second").at("step_seconds").get<double>();
    const Json& rows = explanation.at("rows");
    totals.near(sum(rows, "first_seconds"), first, "rows and the first step");
    totals.near(sum(rows, "second_seconds"), second, "rows and the second step");
    totals.near(sum(rows, "difference_seconds"), second - first, "differences of rows and steps", first);
  }
  if (explanation.at("about") == "plan") {
    totals.holds(explanation.at("fits") == (explanation.at("need_bytes") <= explanation.at("limit_bytes")),
                 "fits == (need_bytes <= limit_bytes)");
    for (const Json& saving : explanation.at("savings"))
      totals.holds(saving.at("seconds") <= explanation.at("step_seconds"), "no saving beyond the step");
    for (const Json& change : explanation.at("changes"))
      totals.holds(change.at("fits") == true, "changes that are offered fit");
  }
}

void check_reproduction(const Json& reproduction, Totals& totals) {
  for (const Json& row : reproduction.at("rows"))
    for (const auto& [quantity, error] : row.at("error").items()) {
      const double published = row.at("published").at(quantity), predicted = row.at("predicted").at(quantity);
      totals.near(published * (1 + error.get<double>()), predicted, quantity + " of " + row.at("system").dump());
    }
}

void check_plan_difference(const Json& difference, Totals& totals) {
  const Json &from = difference.at("from"), &to = difference.at("to"), &rows = difference.at("rows");
  totals.near(sum(rows, "seconds"), to.at("step_seconds").get<double>() - from.at("step_seconds").get<double>(),
              "seconds of the keys and of the plans", from.at("step_seconds"));
  totals.equal(count(rows, "bytes"),
               to.at("memory_bytes").get<std::int64_t>() - from.at("memory_bytes").get<std::int64_t>(),
               "bytes of the keys and of the plans");
}

void check_history(const Json& history, Totals& totals) {
  for (const Json& run : history.at("runs"))
    if (!run.at("step_error").is_null())
      totals.near(run.at("measured_seconds").get<double>() * (1 + run.at("step_error").get<double>()),
                  run.at("predicted_seconds"), "error of " + run.at("name").dump());
  totals.holds(history.at("better") == (history.at("later_error") < history.at("earlier_error")),
               "better == (later_error < earlier_error)");
}

/// Whether something is finite is left to JSON, which has no other numbers.
using Check = void (*)(const Json&, Totals&);
const std::map<std::string, Check> kChecks = {{"reckon.profile/1", check_profile},
                                              {"reckon.search/1", check_search},
                                              {"reckon.comparison/1", check_comparison},
                                              {"reckon.score/1", check_score},
                                              {"reckon.explanation/1", check_explanation},
                                              {"reckon.reproduction/1", check_reproduction},
                                              {"reckon.plan_difference/1", check_plan_difference},
                                              {"reckon.history/1", check_history}};

}  // namespace

std::vector<std::string> broken_totals(const Json& document) {
  Totals totals;
  if (const auto check = kChecks.find(document.at("schema")); check != kChecks.end()) check->second(document, totals);
  return totals.broken;
}

}  // namespace reckon::test
