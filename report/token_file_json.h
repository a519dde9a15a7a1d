// What `tokenize` has written, as JSON (schema "reckon.tokens/1").
#pragma once

#include <cstdint>
#include <string>

namespace reckon {

struct TokenFileSummary {
  std::string file, tokenizer;
  std::int64_t vocabulary = 0;
  std::int64_t documents = 0, tokens = 0;
};

std::string token_file_json(const TokenFileSummary& summary);

}  // namespace reckon
