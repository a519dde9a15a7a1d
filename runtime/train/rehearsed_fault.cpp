#include "runtime/train/rehearsed_fault.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "plan/errors.h"
#include "runtime/train/memory_account.h"

namespace reckon {
namespace {

constexpr std::array<std::pair<std::string_view, RunPhase>, 7> kPhases = {{{"start", RunPhase::start},
                                                                           {"forward", RunPhase::forward},
                                                                           {"backward", RunPhase::backward},
                                                                           {"reduction", RunPhase::reduction},
                                                                           {"optimizer", RunPhase::optimizer},
                                                                           {"checkpoint", RunPhase::checkpoint},
                                                                           {"latest", RunPhase::latest}}};

[[noreturn]] void refuse(std::string_view what) {
  throw ConfigError(fmt::format(
      "RECKON_TEST_FAULT is PHASE:RANK:STEP[:ACTION], such as backward:1:12:kill, but {}; phases are start, "
      "forward, backward, reduction, optimizer, checkpoint, latest; actions are kill, stop, sleep, memory, nan",
      what));
}

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t colon; (colon = text.find(':')) != std::string_view::npos; text.remove_prefix(colon + 1))
    parts.push_back(text.substr(0, colon));
  parts.push_back(text);
  return parts;
}

RunPhase phase_of(std::string_view name) {
  for (const auto& [known, phase] : kPhases)
    if (name == known) return phase;
  refuse(fmt::format("'{}' is no phase", name));
}

std::int64_t number_of(std::string_view text) {
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0)
    refuse(fmt::format("'{}' is no whole number", text));
  return number;
}

[[noreturn]] void sleep_for_ever() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

[[noreturn]] void exceed_memory() {
  constexpr std::int64_t kMoreThanThereIs = std::int64_t{1} << 60;
  AccountScope::current().book(CategoryScope::current(), kMoreThanThereIs);  // throws where there is a limit
  throw std::bad_alloc();
}

}  // namespace

RehearsedFault::Action RehearsedFault::action_of(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Action>, 5> kActions = {{{"kill", Action::kill},
                                                                            {"stop", Action::stop},
                                                                            {"sleep", Action::sleep},
                                                                            {"memory", Action::memory},
                                                                            {"nan", Action::nan}}};
  for (const auto& [known, action] : kActions)
    if (name == known) return action;
  refuse(fmt::format("'{}' is no action", name));
}

RehearsedFault::RehearsedFault(std::string_view text, int rank) {
  if (text.empty()) return;
  const std::vector<std::string_view> parts = parts_of(text);
  if (parts.size() < 3 || parts.size() > 4) refuse(fmt::format("'{}' has {} parts", text, parts.size()));
  const RunPhase phase = phase_of(parts[0]);
  const bool is_here = number_of(parts[1]) == rank;
  step_ = number_of(parts[2]);
  if (parts.size() == 4) action_ = action_of(parts[3]);
  phase_ = is_here ? phase : RunPhase::none;
}

RehearsedFault RehearsedFault::from_environment(int rank) {
  const char* text = std::getenv("RECKON_TEST_FAULT");
  return text == nullptr ? RehearsedFault() : RehearsedFault(text, rank);
}

void RehearsedFault::reach(RunPhase phase, std::int64_t step) const {
  if (phase != phase_ || (step != step_ && phase != RunPhase::start)) return;
  switch (action_) {
    case Action::kill: ::kill(::getpid(), SIGKILL); sleep_for_ever();
    case Action::stop: ::kill(::getpid(), SIGSTOP); break;  // goes on when somebody sends SIGCONT
    case Action::sleep: sleep_for_ever();
    case Action::memory: exceed_memory();
    case Action::nan: break;
  }
}

}  // namespace reckon
