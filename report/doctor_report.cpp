#include "report/doctor_report.h"

#include <fmt/format.h>

#include "report/checked_json.h"

namespace reckon {

namespace {

Cell state_cell(FindingState state) {
  switch (state) {
    case FindingState::good: return {"yes", Paint::good};
    case FindingState::missing: return {"no", Paint::warning};
    case FindingState::idle: break;
  }
  return {"-", Paint::dim};
}

const char* word_of(FindingState state) {
  return state == FindingState::good ? "good" : state == FindingState::missing ? "missing" : "idle";
}

}  // namespace

std::string doctor_text(const std::vector<Finding>& findings, const TextStyle& style) {
  Table table({"part", "there", "what was found"}, {true, true, true});
  for (const Finding& finding : findings) table.add({finding.part, state_cell(finding.state), finding.detail});
  std::string text = table.text(style), remedies;
  for (const Finding& finding : findings)
    if (finding.state == FindingState::missing) remedies += fmt::format("  {}: {}\n", finding.part, finding.remedy);
  return remedies.empty() ? text + "\nnothing is missing\n" : text + "\nwhat brings the missing parts:\n" + remedies;
}

std::string doctor_json(const std::vector<Finding>& findings) {
  Json document = {{"schema", "reckon.doctor/1"}, {"findings", Json::array()}};
  for (const Finding& finding : findings)
    document["findings"].push_back({{"part", finding.part},
                                    {"state", word_of(finding.state)},
                                    {"detail", finding.detail},
                                    {"remedy", finding.remedy.empty() ? Json(nullptr) : Json(finding.remedy)}});
  return document_text(document);
}

}  // namespace reckon
