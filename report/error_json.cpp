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
  return document_text(document);
}

Error read_error(const std::filesystem::path& file) {
  const Json document = read_json(file);
  const CheckedJson root(document, file.string());
  std::vector<Diagnostic> errors;
  for (const CheckedJson& entry : root.at("errors").list()) {
    Diagnostic error{entry.at("message").text(), {}, 0, 0, {}};
    if (entry.at("file").json().is_string()) error.file = entry.at("file").text();
    if (entry.at("line").json().is_number()) error.line = static_cast<int>(entry.at("line").integer());
    if (entry.at("column").json().is_number()) error.column = static_cast<int>(entry.at("column").integer());
    if (entry.at("key").json().is_string()) error.key = entry.at("key").text();
    errors.push_back(std::move(error));
  }
  const std::int64_t code = root.at("exit_code").integer();
  if (code < static_cast<int>(ExitCode::configuration) || code > static_cast<int>(ExitCode::timeout))
    root.at("exit_code").fail("an exit code from 2 to 7 was expected");
  return {static_cast<ExitCode>(code), std::move(errors)};
}

}  // namespace reckon
