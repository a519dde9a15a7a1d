#include "cli/imported_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/exchange/source_fields.h"
#include "plan/plan_schema.h"

namespace reckon {

namespace {

/// The fields of the source that decide `plan_key`: "--num-layers (line 4)", defaults and assumptions as such.
std::string sources_of(const ForeignPlan& imported, const std::string& plan_key) {
  std::string text;
  const auto add = [&](const std::string& one) { text += (text.empty() ? "" : ", ") + one; };
  for (const ForeignField& field : imported.used)
    if (field.plan_key == plan_key) add(fmt::format("{} {} (line {})", field.key, field.value, field.line));
  for (const ForeignField& field : imported.defaults)
    if (field.plan_key == plan_key) add(fmt::format("{} {} (default)", field.key, field.value));
  for (const ForeignField& field : imported.assumed)
    if (field.plan_key == plan_key && field.key.empty()) add(fmt::format("{} (assumed)", field.value));
  return text;
}

const ForeignField* first_source(const ForeignPlan& imported, const std::string& plan_key) {
  const auto found = std::find_if(imported.used.begin(), imported.used.end(),
                                  [&](const ForeignField& field) { return field.plan_key == plan_key; });
  return found == imported.used.end() ? nullptr : &*found;
}

/// The same errors as the user of the source file would put them.
std::vector<Diagnostic> in_source_terms(const std::vector<Diagnostic>& errors, const ForeignPlan& imported) {
  std::vector<Diagnostic> translated;
  for (Diagnostic error : errors) {
    if (!error.file.empty() && error.file != imported.file) {  // another file keeps its place
      translated.push_back(std::move(error));
      continue;
    }
    error.file = imported.file;
    error.line = error.column = 0;
    if (const std::string sources = sources_of(imported, error.key); !sources.empty())
      error.message += fmt::format("; {} comes from {}", error.key, sources);
    if (const ForeignField* source = first_source(imported, error.key)) {
      error.line = source->line;
      error.key = source->key;
    }
    translated.push_back(std::move(error));
  }
  return translated;
}

/// Stand-ins for what is missing, so that the rest can be checked.
std::vector<std::string> stand_ins(const ForeignPlan& imported) {
  std::vector<std::string> overrides;
  for (const std::string& key : imported.missing) {
    if (key == "model") overrides.emplace_back("model=llama-tiny");
    if (key == "model.vocabulary") overrides.emplace_back("model.vocabulary=1048576");
    if (key == "batch.sequence_length") overrides.emplace_back("batch.sequence_length=1048576");
  }
  return overrides;
}

}  // namespace

void apply_overrides(ForeignPlan& imported, const std::vector<std::string>& overrides) {
  SourceFields fields({}, imported);
  for (const std::string& text : overrides) {
    const std::size_t equals = text.find('=');
    std::string key = text.substr(0, equals);
    std::replace(key.begin(), key.end(), '-', '_');
    if (find_plan_key(key) == nullptr && !key.starts_with("model.") && !key.starts_with("hardware."))
      throw ConfigError(fmt::format("{}: {}", text, unknown_plan_key(key)));
    const YamlValue* whole = imported.plan.find(key.substr(0, key.find('.')));
    if (key.find('.') != std::string::npos && whole != nullptr && whole->kind == YamlValue::Kind::scalar) {
      YamlValue based = YamlValue::mapping();
      based.add("base", *whole);
      fields.set(key.substr(0, key.find('.')), std::move(based));
    }
    fields.set(key, parse_yaml(text.substr(equals + 1), text));
    std::erase(imported.missing, key);
    std::erase_if(imported.assumed, [&](const ForeignField& field) { return field.plan_key == key; });
    fields.assume(key, text.substr(equals + 1), "given on the command line");
  }
}

void check_imported(const ForeignPlan& imported, const ConfigPaths& paths) {
  try {
    const Plan plan = parse_plan(write_yaml(imported.plan), imported.file, stand_ins(imported), paths);
    if (std::find(imported.missing.begin(), imported.missing.end(), "model") != imported.missing.end()) return;
    if (std::vector<Diagnostic> broken = check_plan(plan); !broken.empty()) throw RuleError(std::move(broken));
  } catch (const RuleError& error) {
    throw RuleError(in_source_terms(error.diagnostics(), imported));
  } catch (const ConfigError& error) {
    throw ConfigError(in_source_terms(error.diagnostics(), imported));
  }
}

}  // namespace reckon
