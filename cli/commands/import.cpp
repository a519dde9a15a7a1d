#include "cli/commands/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/find_configs.h"
#include "cli/imported_plan.h"
#include "plan/exchange/foreign_plan.h"
#include "report/exchange_report.h"
#include "report/write_file.h"

namespace reckon {

namespace {

ForeignKind kind_named(const std::string& name) {
  if (const auto kind = foreign_kind(name)) return *kind;
  throw ConfigError(fmt::format("--from {} is not one of {}", name, fmt::join(foreign_kinds(), ", ")));
}

[[noreturn]] void refuse_unknown(const ForeignPlan& imported) {
  std::vector<Diagnostic> errors;
  for (const ForeignField& field : imported.not_understood)
    errors.push_back({fmt::format("{} is not understood{}{}", field.key, field.note.empty() ? "" : ": ", field.note),
                      imported.file, field.line, 0, field.key});
  throw ConfigError(std::move(errors));
}

/// How to go on, with what is still missing.
std::string next_command(const ForeignPlan& imported, const std::string& out) {
  std::string text = "reckon plan " + out;
  for (const std::string& key : imported.missing) text += fmt::format(" {}={}", key, key == "model" ? "NAME" : "N");
  return text;
}

}  // namespace

ExitCode import_command(const ImportCommand& options, const Output& output) {
  ImportOptions how;
  if (!options.kind.empty()) how.kind = kind_named(options.kind);
  how.devices = options.devices;
  how.hardware = options.hardware;
  ForeignPlan imported = import_plan(read_text_file(options.file), options.file, how);
  apply_overrides(imported, options.overrides);
  check_imported(imported, find_configs());
  if (options.strict && !imported.not_understood.empty()) refuse_unknown(imported);
  const std::string text = foreign_plan_text(imported);
  if (!options.out.empty()) write_file(options.out, text);
  for (const std::string& warning : imported.warnings) output.warning(warning);
  if (output.json()) {
    output.result(import_json(imported, text));
    return ExitCode::success;
  }
  output.note(import_text(imported));
  if (options.out.empty()) output.result(text);
  else output.note(fmt::format("wrote {}; try: {}", options.out, next_command(imported, options.out)));
  return ExitCode::success;
}

}  // namespace reckon
