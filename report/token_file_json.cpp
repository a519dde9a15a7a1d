#include "report/token_file_json.h"

#include "report/checked_json.h"

namespace reckon {

std::string token_file_json(const TokenFileSummary& summary) {
  const Json document = {{"schema", "reckon.tokens/1"},    {"file", summary.file},
                         {"tokenizer", summary.tokenizer}, {"vocabulary", summary.vocabulary},
                         {"documents", summary.documents}, {"tokens", summary.tokens}};
  return document_text(document);
}

}  // namespace reckon
