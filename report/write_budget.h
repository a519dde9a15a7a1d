// The budget solver's result as a table and as JSON.
#pragma once

#include <string>

#include "plan/budget_result.h"
#include "report/checked_json.h"
#include "report/table.h"

namespace reckon {

Json budget_json(const BudgetResult& budget);
std::string budget_text(const BudgetResult& budget, const TextStyle& style);

}  // namespace reckon
