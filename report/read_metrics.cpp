#include "report/read_metrics.h"

#include <fmt/format.h>

#include <fstream>
#include <optional>
#include <string>

#include "plan/errors.h"
#include "report/checked_json.h"

namespace reckon {

namespace {

LoggedStep read_step(const CheckedJson& line) {
  return {line.at("step").integer(),
          line.at("loss").number(),
          line.at("grad_norm").number(),
          line.at("learning_rate").number(),
          line.at("seconds").number(),
          line.at("tokens_per_second").number(),
          line.at("memory_peak_bytes").integer()};
}

}  // namespace

std::vector<LoggedStep> read_metrics(const std::filesystem::path& file) {
  constexpr std::streamsize kLongestLine = 1 << 16;
  const auto refuse = [&](const char* what, int line) { throw ConfigError({{what, file.string(), line, 1, {}}}); };
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) refuse("there is no such file", 0);
  std::ifstream stream(file, std::ios::binary);
  if (!stream) refuse("the file cannot be read", 0);
  std::vector<LoggedStep> steps;
  std::string text(kLongestLine, '\0');
  int number = 1;
  for (; stream.getline(text.data(), kLongestLine); ++number) {
    const std::string line = text.substr(0, static_cast<std::size_t>(stream.gcount() - (stream.eof() ? 0 : 1)));
    if (line.empty()) continue;
    try {
      const std::optional<Json> json = parse_shallow_json(line);
      if (!json) refuse("this line nests too deep for a step of a run", number);
      steps.push_back(read_step(CheckedJson(*json, file.string(), fmt::format("line {}", number))));
    } catch (const Json::parse_error&) {
      if (stream.eof()) break;
      refuse("this line is not a JSON object", number);
    } catch (const Json::out_of_range&) {
      refuse("a number of this line is too large to be read", number);
    }
  }
  if (!stream.eof()) refuse("this line is too long for a step of a run", number);
  return steps;
}

}  // namespace reckon
