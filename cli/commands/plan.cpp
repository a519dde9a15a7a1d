#include "cli/commands/plan.h"

#include "cli/hardware_notes.h"
#include "cli/load_checked_plan.h"
#include "cli/output_files.h"
#include "cli/page_parts.h"
#include "cost_model/budget_solver.h"
#include "cost_model/estimate_op_times.h"
#include "cost_model/predict.h"
#include "cost_model/single_changes.h"
#include "report/profile_json.h"
#include "report/write_console.h"
#include "report/write_file.h"

namespace reckon {

namespace {

/// With activations.method optimal, what the solver found goes with the prediction.
StepProfile predicted_profile(const Plan& plan) {
  if (plan.activations.method != ActivationMethod::optimal) return predict(resolve(plan));
  Plan open = plan;
  open.activations.method = ActivationMethod::policy;
  SolvedBudget solved = solve_budget(resolve(open), true);
  StepProfile profile = predict(solved.plan);
  profile.budget = std::move(solved.result);
  return profile;
}

bool changes_simulation(const SimSpec& sim) {
  return sim.jitter > 0.0 || !sim.slow_ranks.empty() || sim.network_scale != 1.0 || sim.compute_scale != 1.0 ||
         sim.free_overlap || sim.free_communication;
}

}  // namespace

ExitCode plan_command(const PlanOptions& options, const Output& output) {
  const ConfigPaths paths = find_configs();
  const Plan plan = load_checked_plan(options.plan, options.overrides, paths);
  require_distinct({{"--html", options.html}}, options.plan);
  if (changes_simulation(plan.sim)) output.warning("keys under sim change simulated steps only: see `reckon simulate`");
  tell_about_hardware(plan, options.plan, options.overrides, paths, output);
  StepProfile profile = predicted_profile(plan);
  if (!profile.verdict.fits) profile.verdict.nearest = nearest_fitting_change(plan);
  if (!options.html.empty()) {
    const OpTimes times = estimate_op_times(profile.plan);
    write_file(options.html, report_page(plan_report(profile, simulate_step(profile, times), times)));
  }
  for (const std::string& warning : profile.warnings) output.warning(warning);
  output.result(output.json() ? profile_json(profile) : profile_text(profile, output.style()));
  if (profile.verdict.fits) return ExitCode::success;
  output.note("reckon: " + verdict_sentence(profile.verdict));
  return ExitCode::does_not_fit;
}

}  // namespace reckon
