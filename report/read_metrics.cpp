#include "report/read_metrics.h"

#include <fmt/format.h>

#include <fstream>
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
  std::ifstream stream(file);
  if (!stream) throw ConfigError({{"the file cannot be read", file.string(), 0, 0, {}}});
  std::vector<LoggedStep> steps;
  std::string text;
  for (int number = 1; std::getline(stream, text); ++number) {
    if (text.empty()) continue;
    const Json line = Json::parse(text, nullptr, false);
    if (line.is_discarded()) {
      if (stream.eof()) break;
      throw ConfigError({{"this line is not a JSON object", file.string(), number, 1, {}}});
    }
    steps.push_back(read_step(CheckedJson(line, file.string(), fmt::format("line {}", number))));
  }
  return steps;
}

}  // namespace reckon
