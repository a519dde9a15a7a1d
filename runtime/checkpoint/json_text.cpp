#include "runtime/checkpoint/json_text.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "plan/errors.h"

namespace reckon {
namespace {

constexpr int kDeepest = 16;
constexpr std::size_t kMostShown = 120;

}  // namespace

std::string shown_name(const std::string& name) {
  const std::string text = Json(name).dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= kMostShown ? text : text.substr(0, kMostShown) + "...\"";
}

Json parse_json(std::string_view text, const std::string& file) {
  const auto refuse = [&](const std::string& what) { throw ConfigError({{what, file, 0, 0, {}}}); };
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto check = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kDeepest) refuse(fmt::format("its JSON nests deeper than {} levels", kDeepest));
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
      refuse(fmt::format("its JSON gives the key {} twice", shown_name(value.get<std::string>())));
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const Json::exception& error) {
    refuse(fmt::format("holds text that is no JSON: {}", error.what()));
    throw;
  }
}

}  // namespace reckon
