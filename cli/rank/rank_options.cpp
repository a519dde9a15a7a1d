#include "cli/rank/rank_options.h"

#include <fmt/format.h>

#include <charconv>

#include "cli/launcher.h"
#include "plan/errors.h"

namespace reckon {
namespace {

std::int64_t whole_number(const std::string& option, const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0)
    throw ConfigError(fmt::format("{} takes a whole number, not '{}'", option, text));
  return number;
}

void require(bool given, const std::string& command, const char* option) {
  if (!given) throw ConfigError(fmt::format("reckon-rank {} needs {}", command, option));
}

}  // namespace

RankOptions parse_rank_options(int argc, const char* const* argv) {
  RankOptions options;
  if (argc > 1) options.command = argv[1];
  if (options.command != "train" && options.command != "calibrate")
    throw ConfigError("usage: reckon-rank train|calibrate ...; it is started by `reckon run` and `reckon calibrate`");
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 == argc) throw ConfigError(fmt::format("{} needs a value", word));
      return argv[++i];
    };
    if (word == "--plan") options.sampled_plans.push_back(options.plan = value());
    else if (word == "--out") options.out = value();
    else if (word == "--resume") options.resume = value();
    else if (word == "--backend") options.backend = value();
    else if (word == "--steps") options.steps = whole_number(word, value());
    else if (word == "--ranks") options.ranks = whole_number(word, value());
    else if (word == "--quick") options.quick = true;
    else if (word == "--untimed") options.untimed = true;
    else if (word == "--check-gradients") options.check_gradients = true;
    else if (word == "--bar") options.bar = true;
    else if (!word.starts_with("-") && word.find('=') != std::string::npos) options.overrides.push_back(word);
    else throw ConfigError(fmt::format("reckon-rank {} does not know '{}'", options.command, word));
  }
  if (options.backend == "nccl" && options.command == "calibrate")
    throw ConfigError("calibration measures processors only; on GPUs a plan is predicted from its hardware file");
  require(!options.out.empty(), options.command, "--out");
  if (options.command == "train") require(!options.plan.empty(), options.command, "--plan");
  return options;
}

}  // namespace reckon
