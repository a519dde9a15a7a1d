#include "cli/rank/progress_display.h"

#include <fmt/format.h>

#include <cstdio>

#include "plan/units.h"

namespace reckon {
namespace {

constexpr int kBarWidth = 20;
constexpr auto kLogEvery = std::chrono::seconds(10);

std::string bar(std::int64_t done, std::int64_t all) {
  const auto filled = static_cast<int>(kBarWidth * done / all);
  return "[" + std::string(static_cast<std::size_t>(filled), '#') +
         std::string(static_cast<std::size_t>(kBarWidth - filled), '.') + "]";
}

}  // namespace

std::string progress_line(const StepMetrics& m, std::int64_t steps) {
  return fmt::format(
      "step {:>{}}/{}  loss {:.4f}  grad norm {:.3f}  lr {:.2e}  {:.3f} s  {:.0f} tokens/s  peak {:.2f} GiB", m.step,
      fmt::formatted_size("{}", steps), steps, m.loss, m.gradient_norm, m.learning_rate, m.seconds, m.tokens_per_second,
      static_cast<double>(m.memory_peak_bytes) / kGiB);
}

ProgressDisplay::ProgressDisplay(std::int64_t steps, bool bar) : steps_(steps), bar_(bar) {}

ProgressDisplay::~ProgressDisplay() {
  if (drawn_) std::fputs("\n", stderr);
}

bool ProgressDisplay::due(std::int64_t step) const {
  return step == 1 || step == steps_ || std::chrono::steady_clock::now() - last_line_ >= kLogEvery;
}

void ProgressDisplay::show(const StepMetrics& metrics) {
  seconds_ += metrics.seconds;
  const std::string line = progress_line(metrics, steps_);
  if (bar_) {
    const double left = seconds_ / static_cast<double>(metrics.step) * static_cast<double>(steps_ - metrics.step);
    std::fputs(fmt::format("\r\033[K{} {}  {:.0f} s left", bar(metrics.step, steps_), line, left).c_str(), stderr);
    std::fflush(stderr);
    drawn_ = true;
  } else if (due(metrics.step)) {
    std::fputs((line + "\n").c_str(), stderr);
    last_line_ = std::chrono::steady_clock::now();
  }
}

}  // namespace reckon
