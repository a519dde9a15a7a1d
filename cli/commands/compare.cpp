#include "cli/commands/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/compare_plans.h"
#include "cli/compared_profiles.h"
#include "cli/load_checked_plan.h"
#include "cli/page_parts.h"
#include "cli/parse_tolerance.h"
#include "cost_model/estimate_op_times.h"
#include "cost_model/predict.h"
#include "report/compare_many.h"
#include "report/format_quantity.h"
#include "report/write_console.h"
#include "report/write_file.h"

namespace reckon {

namespace {

/// The options with their tolerances understood.
struct Request : CompareOptions {
  explicit Request(const CompareOptions& options)
      : CompareOptions(options), limits(parse_tolerances(options.tolerances)) {}
  std::vector<Tolerance> limits;
};

/// The page about a plan that is in profiles already: what only a simulation knows is simulated again.
Report simulated_report(const StepProfile& subject) {
  const OpTimes times = estimate_op_times(subject.plan);
  return plan_report(subject, simulate_step(predict(subject.plan), times), times);
}

ExitCode judge(const std::vector<ComparisonRow>& beyond, const Output& output) {
  for (const ComparisonRow& row : beyond)
    output.note(fmt::format("beyond the tolerance: {} ({})", row.quantity,
                            row.error ? signed_percent(*row.error) : "only one side has it"));
  return beyond.empty() ? ExitCode::success : ExitCode::disagreement;
}

ExitCode compare_run(const Request& options, const ConfigPaths& paths, const Output& output) {
  const RunProfiles run = read_run(options.subjects[0], paths);
  const ProfileComparison comparison = compare_profiles(run.predicted, run.simulated, run.measured);
  const auto beyond = rows_beyond(comparison, options.limits);
  if (!options.html.empty()) {
    Report report = simulated_report(run.predicted);
    std::vector<StepProfile> beside;
    if (run.simulated) beside.push_back(*run.simulated);
    beside.push_back(run.measured);
    add_comparison(report, beside, comparison);
    report.metrics = run.metrics;
    write_file(options.html, report_page(report));
  }
  output.result(output.json() ? comparison_json(comparison) : comparison_text(comparison, output.style()));
  return judge(beyond, output);
}

/// What two runs logged; the same seed shows both the same text from the same weights.
void add_losses(ProfileComparison& comparison, const NamedProfiles& named) {
  comparison.losses = compare_losses({named.names[0], named.names[1]}, named.metrics[0], named.metrics[1]);
  const std::uint64_t first = named.profiles[0].plan.train.seed, second = named.profiles[1].plan.train.seed;
  if (comparison.losses && first != second)
    comparison.remarks.push_back(
        fmt::format("the runs have different seeds, {} and {}, so their losses are of different text", first, second));
}

ExitCode compare_two(const Request& options, const NamedProfiles& named, const Output& output) {
  ProfileComparison comparison = compare_profiles(named.profiles[0], std::nullopt, named.profiles[1]);
  if (comparison.columns.front() == comparison.columns.back()) {  // "measured" twice says nothing
    comparison.columns.front() = named.names[0];
    comparison.columns.back() = named.names[1];
  }
  add_losses(comparison, named);
  const auto beyond = rows_beyond(comparison, options.limits);
  if (!options.html.empty()) {
    Report report = simulated_report(named.profiles[0]);
    add_comparison(report, {named.profiles[1]}, comparison);
    write_file(options.html, report_page(report));
  }
  output.result(output.json() ? comparison_json(comparison) : comparison_text(comparison, output.style()));
  return judge(beyond, output);
}

ExitCode compare_several(const Request& options, const NamedProfiles& named, const Output& output) {
  const ManyComparison comparison = compare_many(named.names, named.profiles);
  std::vector<ComparisonRow> beyond;
  for (const ProfileComparison& pair : comparison.pairs)
    for (const ComparisonRow& row : rows_beyond(pair, options.limits)) beyond.push_back(row);
  if (!options.html.empty()) {
    Report report = simulated_report(named.profiles[0]);
    report.profiles = named.profiles;
    write_file(options.html, report_page(report));
  }
  output.result(output.json() ? many_json(comparison) : many_text(comparison, output.style()));
  return judge(beyond, output);
}

ExitCode compare_profile_files(const Request& options, const ConfigPaths& paths, const Output& output) {
  if (options.subjects.size() < 2)
    throw ConfigError("compare takes the folder of a run, two profiles or more, or two plans; found one profile");
  const NamedProfiles named = read_profiles(options.subjects, paths);
  return named.profiles.size() == 2 ? compare_two(options, named, output) : compare_several(options, named, output);
}

ExitCode compare_history(const Request& options, const ConfigPaths& paths, const Output& output) {
  const RunHistory history = read_history(options.subjects, paths);
  if (!options.html.empty()) {
    Report report;
    report.title = fmt::format("Prediction and measurement over {} runs", history.runs.size());
    report.verdict = history_sentence(history);
    report.history = history;
    write_file(options.html, report_page(report));
  }
  output.result(output.json() ? history_json(history) : history_text(history, output.style()));
  return ExitCode::success;
}

ExitCode compare_plan_files(const Request& options, const ConfigPaths& paths, const Output& output) {
  std::vector<std::string> plans, overrides;
  for (const std::string& subject : options.subjects)
    (subject.find('=') == std::string::npos ? plans : overrides).push_back(subject);
  if (plans.empty() || plans.size() > 2 || (plans.size() == 1 && overrides.empty()))
    throw ConfigError(
        fmt::format("compare takes two plans, or one and key=value for the other; found {} plan{} and {} "
                    "override{}",
                    plans.size(), plans.size() == 1 ? "" : "s", overrides.size(), overrides.size() == 1 ? "" : "s"));
  const Plan first = load_checked_plan(plans.front(), {}, paths);
  const Plan second = load_checked_plan(plans.back(), overrides, paths);
  PlanDifference difference = compare_plans(first, second);
  difference.from.name = plans.front();
  difference.to.name = plans.back();
  for (const std::string& text : overrides) difference.to.name += " " + text;
  if (!options.html.empty()) {
    Report report;
    report.title = "What the keys of two plans do";
    report.summary = fmt::format("first: {}; second: {}", difference.from.name, difference.to.name);
    report.difference = difference;
    write_file(options.html, report_page(report));
  }
  output.result(output.json() ? difference_json(difference) : difference_text(difference, output.style()));
  return ExitCode::success;
}

}  // namespace

ExitCode compare_command(const CompareOptions& given, const Output& output) {
  const Request options(given);
  const ConfigPaths paths = find_configs();
  const auto& subjects = options.subjects;
  if (options.history) return compare_history(options, paths, output);
  const auto plans = std::count_if(subjects.begin(), subjects.end(), names_plan);
  if (plans == static_cast<std::ptrdiff_t>(subjects.size())) return compare_plan_files(options, paths, output);
  if (plans > 0)
    throw ConfigError(
        "compare takes either profiles and folders of runs, or plans, not both; a profile's name ends in .json");
  std::error_code error;
  const bool run = subjects.size() == 1 && std::filesystem::is_directory(subjects[0], error);
  return run ? compare_run(options, paths, output) : compare_profile_files(options, paths, output);
}

}  // namespace reckon
