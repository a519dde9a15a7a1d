#include "report/error_json.h"

#include "report/checked_json.h"

namespace reckon {

std::string error_json(ExitCode exit_code, const std::vector<Diagnostic>& errors) {
  Json list = Json::array();
  for (const Diagnostic& error : errors) {
    Json entry = {
        {"message", error.message}, {"file", nullptr}, {"line", nullptr}, {"column", nullptr}, {"key", nullptr}};
    if (!error.file.empty()) entry["file"] = error.file;
    if (error.line > 0) entry["line"] = error.line;
    if (error.column > 0) entry["column"] = error.column;
    if (!error.key.empty()) entry["key"] = error.key;
    list.push_back(std::move(entry));
  }
  const Json document = {{"schema", "reckon.error/1"}, {"exit_code", static_cast<int>(exit_code)}, {"errors", list}};
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace reckon
