// `reckon tokenize`: text or JSONL -> a token file with document borders.
#pragma once

#include <string>

#include "cli/output.h"
#include "plan/errors.h"

namespace reckon {

struct TokenizeOptions {
  std::string input;  // text file or folder, JSONL, or Megatron's .bin/.idx, whose tokens are copied
  std::string out;
  std::string tokenizer = "bytes";  // or a SentencePiece model
};

ExitCode tokenize_command(const TokenizeOptions& options, const Output& output);

}  // namespace reckon
