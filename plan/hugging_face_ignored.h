// Fields of a Hugging Face config.json without influence on shapes, memory and time: names, token ids, dropout, initial
// values, generation, limits of the context, multipliers, routing rules that do not change how many experts a token
// visits.
#pragma once

#include <string_view>

namespace reckon {

bool is_without_influence(std::string_view field);

}  // namespace reckon
