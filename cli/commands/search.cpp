#include "cli/commands/search.h"
#include "cli/hardware_notes.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/find_configs.h"
#include "cli/progress_line.h"
#include "cost_model/search.h"
#include "plan/parse_quantity.h"
#include "report/report_page.h"
#include "report/result_json.h"
#include "report/result_text.h"
#include "report/write_file.h"

namespace reckon {

namespace {

constexpr int kPlansOnPage = 150;

SearchResult search_with_progress(const Plan& plan, SearchOptions how) {
  ProgressLine line("searching", "plans");
  how.progress = [&](double share, std::int64_t plans) { line.show(share, plans); };
  return search(plan, how);
}

Report search_report(const Plan& plan, const SearchResult& result) {
  Report report;
  report.title = fmt::format("Plans for {} on {}", plan.model.name, plan.hardware.name);
  report.summary = fmt::format("{} rows of {} tokens a step", plan.batch.global_batch, plan.batch.sequence_length);
  report.verdict = fmt::format("{} of {} legal plans fit", result.fits, result.legal);
  report.search = result;
  return report;
}

}  // namespace

ExitCode search_command(const SearchCommand& options, const Output& output) {
  const ConfigPaths paths = find_configs();
  // The plan itself may break rules or not fit: the search is for one that does not.
  const Plan plan = load_plan(find_plan(options.plan, paths), options.overrides, paths);
  tell_about_hardware(plan, options.plan, options.overrides, paths, output);
  SearchOptions how;
  how.devices = options.devices;
  how.top = options.html.empty() ? options.top : std::max(options.top, kPlansOnPage);
  how.threads = options.threads;
  how.fixed = options.fixed;
  if (!options.time_limit.empty()) how.limit = parse_seconds(options.time_limit);
  if (options.limit_seconds > 0.0) how.limit = Seconds(options.limit_seconds);
  SearchResult result = search_with_progress(plan, how);
  if (!options.html.empty()) write_file(options.html, report_page(search_report(plan, result)));
  result.plans.resize(std::min(result.plans.size(), static_cast<std::size_t>(options.top)));
  output.result(output.json() ? search_json(result) : search_text(result, output.style()));
  if (result.plans.empty())
    output.note(
        fmt::format("none of the {} legal plans fits into memory; more --devices, a smaller batch.micro_batch "
                    "or a shorter batch.sequence_length may help",
                    result.legal));
  return !result.plans.empty() ? ExitCode::success : ExitCode::does_not_fit;
}

}  // namespace reckon
