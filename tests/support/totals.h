// Whether the numbers of a command's JSON document add up, by its schema.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace reckon::test {

/// One sentence for every total that is not the sum of its parts, every rate, order or error that contradicts what
/// stands beside it. Empty for a document without totals.
std::vector<std::string> broken_totals(const nlohmann::json& document);

}  // namespace reckon::test
