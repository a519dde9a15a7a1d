#include "cli/rank/metrics_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <sstream>

#include "plan/errors.h"
#include "runtime/checkpoint/durable_file.h"

namespace reckon {
namespace {

constexpr std::string_view kStart = "{\"step\": ";

/// Step of a whole line, 0 for anything else.
std::int64_t step_of(const std::string& line) {
  if (!line.starts_with(kStart) || !line.ends_with('}')) return 0;
  return std::strtoll(line.c_str() + kStart.size(), nullptr, 10);
}

/// JSON has no word for what is not finite.
std::string exact(double number) {
  return std::isfinite(number) ? fmt::format("{}", number) : "null";
}
std::string rounded(double number, int digits) {
  return std::isfinite(number) ? fmt::format("{:.{}g}", number, digits) : "null";
}

}  // namespace

std::string metrics_until(const std::filesystem::path& file, std::int64_t step) {
  std::ifstream in(file);
  std::string kept;
  for (std::string line; std::getline(in, line);) {
    const std::int64_t number = step_of(line);
    if (number < 1 || number > step) break;
    kept += line + "\n";
  }
  return kept;
}

MetricsFile::MetricsFile(const std::filesystem::path& file, const std::string& earlier) : file_(file) {
  replace_durably(file, earlier);
  out_.open(file, std::ios::app);
  check();
}

/// Loss and norm are written so that they read back to the bit: a resumed run is compared by them.
void MetricsFile::write(const StepMetrics& m) {
  out_ << fmt::format(
              R"({{"step": {}, "loss": {}, "grad_norm": {}, "learning_rate": {}, "seconds": {}, "cpu_seconds": {}, )"
              R"("tokens_per_second": {}, "memory_peak_bytes": {}}})",
              m.step, exact(m.loss), exact(m.gradient_norm), rounded(m.learning_rate, 9), rounded(m.seconds, 6),
              rounded(m.cpu_seconds, 6), rounded(m.tokens_per_second, 6), m.memory_peak_bytes)
       << std::endl;
  check();
}

void MetricsFile::make_durable() {
  sync_file(file_);
}

void MetricsFile::check() const {
  if (!out_) throw RunError(fmt::format("{} cannot be written: {}", file_.string(), std::strerror(errno)));
}

}  // namespace reckon
