// Models, hardware and number formats as tables and as JSON (schema "reckon.catalogue/1").
#pragma once

#include <string>
#include <vector>

#include "plan/hardware_spec.h"
#include "plan/model_spec.h"
#include "report/table.h"

namespace reckon {

std::string models_text(const std::vector<ModelSpec>& models, const TextStyle& style);
std::string models_json(const std::vector<ModelSpec>& models);

/// One model: shape and exact parameter counts by part.
std::string model_text(const ModelSpec& model, const TextStyle& style);

std::string hardware_list_text(const std::vector<HardwareSpec>& hardware, const TextStyle& style);
std::string hardware_list_json(const std::vector<HardwareSpec>& hardware);

/// One machine: device, links, fitted constants and where they come from.
std::string hardware_text(const HardwareSpec& hardware, const TextStyle& style);

std::string formats_text(const TextStyle& style);
std::string formats_json();

std::string names_json(const std::string& kind, const std::vector<std::string>& names);

}  // namespace reckon
