// What became of the fields of an imported file, and what an export could not say: text for stderr and JSON (schemas
// "reckon.import/1" and "reckon.export/1").
#pragma once

#include <string>

#include "plan/exchange/export_plan.h"
#include "plan/exchange/foreign_plan.h"

namespace reckon {

/// `plan_text`: the plan file as it was written.
std::string import_json(const ForeignPlan& imported, const std::string& plan_text);
std::string import_text(const ForeignPlan& imported);

std::string export_json(const std::string& target, const ForeignFile& file);

}  // namespace reckon
