#include "cli/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "report/format_quantity.h"

namespace reckon {

namespace {

constexpr auto kRedrawEvery = std::chrono::milliseconds(100);

}  // namespace

ProgressLine::ProgressLine(std::string what, std::string unit)
    : what_(std::move(what)), unit_(std::move(unit)), terminal_(::isatty(STDERR_FILENO)), start_(Clock::now()) {}

ProgressLine::~ProgressLine() {
  if (drawn_) std::fputs("\r\033[K", stderr);
}

void ProgressLine::show(double share, std::int64_t units) {
  const Clock::time_point now = Clock::now();
  if (!terminal_ || now - last_ < kRedrawEvery) return;
  last_ = now;
  drawn_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  std::fputs(("\r\033[K" + progress_text(what_, unit_, share, units, seconds)).c_str(), stderr);
  std::fflush(stderr);
}

std::string progress_text(const std::string& what, const std::string& unit, double share, std::int64_t units,
                          double seconds) {
  std::string text = fmt::format("{} {:3.0f} %", what, 100 * share);
  if (seconds > 0) text += fmt::format("  {} {}/s", compact(static_cast<double>(units) / seconds), unit);
  if (share > 0) text += fmt::format("  {:.0f} s left", seconds / share * (1 - share));
  return text;
}

}  // namespace reckon
