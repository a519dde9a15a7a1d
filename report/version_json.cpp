#include "report/version_json.h"

#include <sstream>

#include "report/checked_json.h"

namespace reckon {

std::string version_json(const BuildParts& parts) {
  Json document = {{"schema", "reckon.version/1"}, {"version", parts.version}, {"compiler", parts.compiler}};
  document["backends"] = Json::array();
  std::istringstream backends(parts.backends);
  for (std::string one; backends >> one;) document["backends"].push_back(one);
  document["rank_program"] = parts.rank_program.empty() ? Json(nullptr) : Json(parts.rank_program);
  return document_text(document);
}

}  // namespace reckon
