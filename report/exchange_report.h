// What became of the fields of an imported file, what an export could not say, and what was exported: text for stderr
// and JSON (schemas "reckon.import/1", "reckon.export/1" and "reckon.weights_export/1").
#pragma once

#include <cstdint>
#include <string>

#include "plan/exchange/export_plan.h"
#include "plan/exchange/foreign_plan.h"

namespace reckon {

/// `plan_text`: the plan file as it was written.
std::string import_json(const ForeignPlan& imported, const std::string& plan_text);
std::string import_text(const ForeignPlan& imported);

std::string export_json(const std::string& target, const ForeignFile& file);
/// Of weights, which are files in a folder.
std::string weights_export_json(const std::string& folder, std::int64_t step, std::int64_t tensors, std::int64_t bytes,
                                const std::string& type);

}  // namespace reckon
