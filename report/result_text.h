// Search, reproduction and scoring results as text for a person.
#pragma once

#include <string>

#include "plan/reproduction_result.h"
#include "plan/score_result.h"
#include "plan/search_result.h"
#include "report/table.h"

namespace reckon {

std::string search_text(const SearchResult& result, const TextStyle& style);
std::string reproduction_text(const ReproductionResult& result, const TextStyle& style);
std::string score_text(const ScoreResult& result, bool with_rows, const TextStyle& style);

}  // namespace reckon
