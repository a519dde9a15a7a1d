// Search, reproduction and scoring results as JSON: schemas reckon.search/1, reckon.reproduction/1, reckon.score/1.
#pragma once

#include <string>

#include "plan/reproduction_result.h"
#include "plan/score_result.h"
#include "plan/search_result.h"

namespace reckon {

std::string search_json(const SearchResult& result);
std::string reproduction_json(const ReproductionResult& result);
/// `with_rows`: also every row, scored or skipped.
std::string score_json(const ScoreResult& result, bool with_rows);

}  // namespace reckon
