// How far a command is, on a terminal: share, rate and remaining time on one line that is redrawn.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace reckon {

class ProgressLine {
 public:
  /// "searching 42 %  3,100 plans/s  12 s left" with what = "searching", unit = "plans". Silent where standard error is
  /// no terminal.
  ProgressLine(std::string what, std::string unit);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// `share` of the work is done, `units` of it.
  void show(double share, std::int64_t units);

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_, unit_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point start_, last_;
};

/// The text of the line after `seconds` of work.
std::string progress_text(const std::string& what, const std::string& unit, double share, std::int64_t units,
                          double seconds);

}  // namespace reckon
