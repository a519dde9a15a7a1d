// What `reckon doctor` found, as a table and as JSON (schema "reckon.doctor/1").
#pragma once

#include <string>
#include <vector>

#include "report/table.h"

namespace reckon {

enum class FindingState { good, missing, idle };  // idle: of no use on this machine

struct Finding {
  std::string part;
  FindingState state = FindingState::good;
  std::string detail;
  std::string remedy;  // the command that brings it; empty where nothing is missing
};

std::string doctor_text(const std::vector<Finding>& findings, const TextStyle& style);
std::string doctor_json(const std::vector<Finding>& findings);

}  // namespace reckon
