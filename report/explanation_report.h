// Explanations for a person and as JSON (schema "reckon.explanation/1", `about`: size, plan or difference).
#pragma once

#include <string>

#include "plan/explanation.h"
#include "report/table.h"

namespace reckon {

std::string explanation_text(const SizeExplanation& explanation, const TextStyle& style);
std::string explanation_text(const PlanExplanation& explanation, const TextStyle& style);
std::string explanation_text(const DifferenceExplanation& explanation, const TextStyle& style);

std::string explanation_json(const SizeExplanation& explanation);
std::string explanation_json(const PlanExplanation& explanation);
std::string explanation_json(const DifferenceExplanation& explanation);

}  // namespace reckon
