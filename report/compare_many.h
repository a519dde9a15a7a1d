// Three or more profiles of the same work, each against the last one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/compare_profiles.h"
#include "report/table.h"

namespace reckon {

/// One quantity of all profiles; entries are in the order of the columns, empty where a profile lacks the component.
struct ManyRow {
  std::string quantity;
  Aspect aspect = Aspect::total;
  Unit unit = Unit::seconds;
  std::vector<std::optional<double>> values;  // of every profile, the reference last
  std::vector<std::optional<double>> errors;  // (value - reference) / reference, of all but the reference
};

struct ManyComparison {
  std::vector<std::string> columns;
  std::vector<ManyRow> rows;
  std::vector<ProfileComparison> pairs;  // each profile with the reference, for tolerances and blame
};

/// `names` stand above the columns. Throws ConfigError when a profile is of other work than the last.
ManyComparison compare_many(const std::vector<std::string>& names, const std::vector<StepProfile>& profiles);

std::string many_text(const ManyComparison& comparison, const TextStyle& style);

/// Schema "reckon.comparison/1" with `values` and `errors`; predicted is the first profile, measured the last.
std::string many_json(const ManyComparison& comparison);

}  // namespace reckon
