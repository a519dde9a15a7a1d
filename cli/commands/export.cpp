#include "cli/commands/export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/load_checked_plan.h"
#include "cost_model/predict.h"
#include "plan/exchange/export_plan.h"
#include "report/exchange_report.h"
#include "report/write_file.h"
#include "runtime/checkpoint/export_hugging_face.h"

namespace reckon {

namespace {

/// One row for each target.
struct Target {
  std::string_view name;
  ForeignFile (*write)(const Plan&);
};
constexpr Target kTargets[] = {
    {"megatron", export_megatron}, {"deepspeed", export_deepspeed}, {"torchtitan", export_torchtitan}};

/// Takes a run or a checkpoint instead of a plan, and makes a folder.
constexpr const char* kHuggingFace = "huggingface";

ExitCode export_weights(const ExportCommand& options, const Output& output) {
  if (options.out.empty() || !options.overrides.empty())
    throw ConfigError("--to huggingface takes the folder of a run or a checkpoint, and --out DIR for the weights");
  const HuggingFaceExport done = export_hugging_face(options.plan, options.out);
  if (output.json()) output.result(weights_export_json(options.out, done.step, done.tensors, done.bytes, done.type));
  else
    output.note(fmt::format("wrote {} tensors of {} ({} bytes) after step {} to {}", done.tensors, done.type,
                            done.bytes, done.step, options.out));
  return ExitCode::success;
}

/// Other tools cannot choose themselves how much to recompute.
Plan with_recomputation(Plan plan) {
  if (plan.activations.recompute == Recompute::full && plan.activations.recompute_layers.empty())
    plan.activations.recompute_layers = resolve(plan).activations.recompute_layers;
  return plan;
}

}  // namespace

std::vector<std::string> export_targets() {
  std::vector<std::string> names;
  for (const Target& target : kTargets) names.emplace_back(target.name);
  names.emplace_back(kHuggingFace);
  return names;
}

ExitCode export_command(const ExportCommand& options, const Output& output) {
  if (options.target == kHuggingFace) return export_weights(options, output);
  const auto target = std::find_if(std::begin(kTargets), std::end(kTargets),
                                   [&](const Target& one) { return one.name == options.target; });
  if (target == std::end(kTargets))
    throw ConfigError(fmt::format("--to {} is not one of {}", options.target, fmt::join(export_targets(), ", ")));
  const Plan plan = with_recomputation(load_checked_plan(options.plan, options.overrides, find_configs()));
  const ForeignFile file = target->write(plan);
  for (const std::string& sentence : file.lost) output.warning(sentence);
  if (!options.out.empty()) write_file(options.out, file.text);
  if (output.json()) output.result(export_json(options.target, file));
  else if (options.out.empty()) output.result(file.text);
  else output.note(fmt::format("wrote {}", options.out));
  return ExitCode::success;
}

}  // namespace reckon
