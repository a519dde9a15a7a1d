#include "report/exchange_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/checked_json.h"
#include "report/plan_json.h"

namespace reckon {

namespace {

Json fields_json(const std::vector<ForeignField>& fields) {
  Json array = Json::array();
  for (const ForeignField& field : fields) {
    Json object = {{"key", field.key}, {"value", field.value}};
    object["line"] = field.line > 0 ? Json(field.line) : Json(nullptr);
    object["plan_key"] = field.plan_key.empty() ? Json(nullptr) : Json(field.plan_key);
    object["note"] = field.note.empty() ? Json(nullptr) : Json(field.note);
    array.push_back(std::move(object));
  }
  return array;
}

std::string line_of(const ForeignField& field) {
  std::string text = field.key.empty() ? "" : field.key;
  if (!field.value.empty()) text += (text.empty() ? "" : " ") + field.value;
  if (field.line > 0) text += fmt::format(" (line {})", field.line);
  if (!field.plan_key.empty()) text += " -> " + field.plan_key;
  return field.note.empty() ? text : text + ": " + field.note;
}

std::string section(std::string_view title, const std::vector<ForeignField>& fields) {
  if (fields.empty()) return "";
  std::string text = fmt::format("{}:\n", title);
  for (const ForeignField& field : fields) text += "  " + line_of(field) + "\n";
  return text;
}

}  // namespace

std::string import_json(const ForeignPlan& imported, const std::string& plan_text) {
  Json document = {{"schema", "reckon.import/1"}, {"kind", name_of(imported.kind)}, {"file", imported.file}};
  document["plan"] = tree_json(imported.plan);
  document["plan_text"] = plan_text;
  document["used"] = fields_json(imported.used);
  document["defaults"] = fields_json(imported.defaults);
  document["assumed"] = fields_json(imported.assumed);
  document["not_modelled"] = fields_json(imported.not_modelled);
  document["ignored"] = fields_json(imported.ignored);
  document["not_understood"] = fields_json(imported.not_understood);
  document["missing"] = imported.missing;
  document["warnings"] = imported.warnings;
  return document_text(document);
}

std::string import_text(const ForeignPlan& imported) {
  std::string text = fmt::format("{}: read as {}\n", imported.file, name_of(imported.kind));
  text += section("used", imported.used);
  text += section("defaults of the tool", imported.defaults);
  text += section("assumed", imported.assumed);
  text += section("with an effect that the plan cannot say", imported.not_modelled);
  if (!imported.ignored.empty()) {
    std::vector<std::string> names;
    for (const ForeignField& field : imported.ignored) names.push_back(field.key);
    text += fmt::format("without influence on memory and time: {}\n", fmt::join(names, ", "));
  }
  text += section("not understood", imported.not_understood);
  if (!imported.missing.empty())
    text += fmt::format("missing: {}; give KEY=VALUE here, or behind the plan when you use it\n",
                        fmt::join(imported.missing, ", "));
  text.pop_back();
  return text;
}

std::string export_json(const std::string& target, const ForeignFile& file) {
  const Json document = {{"schema", "reckon.export/1"}, {"target", target}, {"text", file.text}, {"lost", file.lost}};
  return document_text(document);
}

std::string weights_export_json(const std::string& folder, std::int64_t step, std::int64_t tensors, std::int64_t bytes,
                                const std::string& type) {
  const Json document = {{"schema", "reckon.weights_export/1"},
                         {"target", "huggingface"},
                         {"folder", folder},
                         {"step", step},
                         {"tensors", tensors},
                         {"bytes", bytes},
                         {"type", type}};
  return document_text(document);
}

}  // namespace reckon
