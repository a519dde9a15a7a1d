#include "report/checked_json.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include "plan/errors.h"

namespace reckon {

namespace {

constexpr std::uintmax_t kLargestFile = 64u << 20;
constexpr int kDeepest = 100;

/// Line and column (from 1) of byte `offset` (from 1, as the parser counts).
Diagnostic place_of(const std::string& text, std::size_t offset, const std::string& file, std::string message) {
  Diagnostic diagnostic{std::move(message), file, 1, 1, {}};
  for (std::size_t i = 0; i + 1 < offset && i < text.size(); ++i) {
    diagnostic.column = text[i] == '\n' ? 1 : diagnostic.column + 1;
    if (text[i] == '\n') ++diagnostic.line;
  }
  return diagnostic;
}

std::string read_text(const std::filesystem::path& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    throw ConfigError({{"a JSON file was expected here, but it is a folder", file.string(), 0, 0, {}}});
  const auto bytes = std::filesystem::file_size(file, error);
  if (error) throw ConfigError({{"the file cannot be read: " + error.message(), file.string(), 0, 0, {}}});
  if (bytes > kLargestFile) {
    const std::string message = fmt::format("the file has {} bytes; a profile has at most {}", bytes, kLargestFile);
    throw ConfigError({{message, file.string(), 0, 0, {}}});
  }
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream) throw ConfigError({{"the file cannot be read", file.string(), 0, 0, {}}});
  return text.str();
}

}  // namespace

std::string document_text(const Json& document) {
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::optional<Json> parse_shallow_json(const std::string& text) {
  bool too_deep = false;
  const auto limit_depth = [&](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > kDeepest;
    return !too_deep;
  };
  Json document = Json::parse(text, limit_depth);
  return too_deep ? std::nullopt : std::optional(std::move(document));
}

Json read_json(const std::filesystem::path& file) {
  const std::string text = read_text(file);
  try {
    if (std::optional<Json> document = parse_shallow_json(text)) return *std::move(document);
    throw ConfigError({{fmt::format("values are nested more than {} levels deep", kDeepest), file.string(), 0, 0, {}}});
  } catch (const Json::parse_error& error) {
    const std::string what = error.what();
    const auto reason = what.find("syntax error");
    throw ConfigError({place_of(text, error.byte, file.string(),
                                "this is not JSON: " + (reason == std::string::npos ? what : what.substr(reason)))});
  } catch (const Json::out_of_range&) {
    throw ConfigError({{"a number is too large to be read", file.string(), 0, 0, {}}});
  }
}

bool CheckedJson::has(const char* key) const {
  return value_->is_object() && value_->contains(key);
}

CheckedJson CheckedJson::at(const char* key) const {
  if (!value_->is_object()) fail("an object was expected");
  const auto member = value_->find(key);
  const std::string place = place_.empty() ? key : place_ + "." + key;
  if (member == value_->end()) throw ConfigError({{fmt::format("the key {} is missing", place), file_, 0, 0, place}});
  return {*member, file_, place};
}

std::vector<CheckedJson> CheckedJson::list() const {
  if (!value_->is_array()) fail("a list was expected");
  std::vector<CheckedJson> elements;
  for (std::size_t i = 0; i < value_->size(); ++i)
    elements.emplace_back((*value_)[i], file_, fmt::format("{}[{}]", place_, i));
  return elements;
}

std::string CheckedJson::text() const {
  if (!value_->is_string()) fail("a text was expected");
  return value_->get<std::string>();
}

bool CheckedJson::boolean() const {
  if (!value_->is_boolean()) fail("true or false was expected");
  return value_->get<bool>();
}

std::int64_t CheckedJson::integer() const {
  const bool fits = value_->is_number_integer() &&
                    !(value_->is_number_unsigned() &&
                      value_->get<std::uint64_t>() > std::uint64_t(std::numeric_limits<std::int64_t>::max()));
  if (!fits) fail("a whole number was expected");
  return value_->get<std::int64_t>();
}

double CheckedJson::number() const {
  if (value_->is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (!value_->is_number()) fail("a number was expected");
  const double number = value_->get<double>();
  if (!std::isfinite(number)) fail("a finite number was expected");
  return number;
}

void CheckedJson::fail(const std::string& expected) const {
  std::string found = value_->dump(-1, ' ', true, Json::error_handler_t::replace);
  if (found.size() > 40) found = found.substr(0, 40) + "...";
  const std::string where = place_.empty() ? "the document" : place_;
  throw ConfigError({{fmt::format("{}: {}, found {}", where, expected, found), file_, 0, 0, place_}});
}

}  // namespace reckon
