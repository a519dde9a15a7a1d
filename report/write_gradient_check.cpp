#include "report/write_gradient_check.h"

#include <fmt/format.h>

#include <set>

#include "report/checked_json.h"

namespace reckon {

namespace {

constexpr const char* kSchema = "reckon.gradients/1";
constexpr std::size_t kLayersShown = 8;

Json errors_json(const GradientErrors& errors) {
  return {{"all", errors.all}, {"weights", errors.by_group}, {"layers", errors.by_layer}};
}

GradientErrors read_errors(const CheckedJson& json) {
  GradientErrors errors;
  errors.all = json.at("all").number();
  for (const auto& [group, error] : json.at("weights").json().items())
    errors.by_group[group] = json.at("weights").at(group.c_str()).number();
  for (const auto& [group, layers] : json.at("layers").json().items())
    for (const CheckedJson& error : json.at("layers").at(group.c_str()).list())
      errors.by_layer[group].push_back(error.number());
  return errors;
}

std::string cell(double error) {
  return error == 0 ? "0" : fmt::format("{:.4f}", error);
}

/// Groups that any of the errors has.
std::vector<std::string> groups_of(const GradientCheck& check) {
  std::vector<std::string> groups;
  for (const char* group :
       {"norm", "query", "key", "value", "projection", "gate", "up", "down", "embedding", "head", "other"})
    if (check.plan.by_group.contains(group)) groups.emplace_back(group);
  return groups;
}

std::vector<Cell> row_of(const std::string& name, const GradientErrors& errors,
                         const std::vector<std::string>& groups) {
  std::vector<Cell> row = {name, cell(errors.all)};
  for (const std::string& group : groups) {
    const auto found = errors.by_group.find(group);
    row.emplace_back(found == errors.by_group.end() ? "" : cell(found->second));
  }
  return row;
}

}  // namespace

std::string gradient_check_json(const GradientCheck& check) {
  Json classes = Json::array();
  for (const StoredClassError& row : check.classes)
    classes.push_back({{"class", row.activation_class}, {"format", row.format}, {"errors", errors_json(row.errors)}});
  const Json document = {
      {"schema", kSchema}, {"step", check.step}, {"plan", errors_json(check.plan)}, {"classes", classes}};
  return document_text(document);
}

GradientCheck read_gradient_check(const std::filesystem::path& file) {
  const Json document = read_json(file);
  const CheckedJson root(document, file.string());
  if (root.at("schema").text() != kSchema) root.at("schema").fail(fmt::format("{} was expected", kSchema));
  GradientCheck check;
  check.step = root.at("step").integer();
  check.plan = read_errors(root.at("plan"));
  for (const CheckedJson& row : root.at("classes").list())
    check.classes.push_back({row.at("class").text(), row.at("format").text(), read_errors(row.at("errors"))});
  return check;
}

std::string gradient_check_text(const GradientCheck& check, const TextStyle& style) {
  const std::vector<std::string> groups = groups_of(check);
  std::vector<std::string> header = {"stored in fewer bits", "all weights"};
  header.insert(header.end(), groups.begin(), groups.end());
  Table table(header);
  table.add(row_of("as the plan says", check.plan, groups));
  for (const StoredClassError& row : check.classes)
    table.add(row_of(fmt::format("{} alone, {}", row.activation_class, row.format), row.errors, groups));
  std::string text = fmt::format(
                         "gradients of step {} against the same step with everything kept in compute precision:\n"
                         "||g - g_kept|| / ||g_kept|| by what the weights belong to\n\n",
                         check.step) +
                     table.text(style);
  std::vector<std::string> layers = {"as the plan says"};
  std::size_t shown = 0;
  for (const auto& [group, errors] : check.plan.by_layer) shown = std::max(shown, errors.size());
  const std::size_t step = (shown + kLayersShown - 1) / kLayersShown;
  for (std::size_t layer = 0; layer < shown; layer += step) layers.push_back(fmt::format("layer {}", layer));
  Table by_layer(layers);
  for (const std::string& group : groups) {
    const auto found = check.plan.by_layer.find(group);
    if (found == check.plan.by_layer.end()) continue;
    std::vector<Cell> row = {group};
    for (std::size_t layer = 0; layer < shown; layer += step)
      row.emplace_back(layer < found->second.size() ? cell(found->second[layer]) : "");
    by_layer.add(std::move(row));
  }
  return text + (shown > 0 ? "\n" + by_layer.text(style) : "");
}

}  // namespace reckon
