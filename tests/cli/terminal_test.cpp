// What a person sees on a terminal: a plan on one screen, bars and progress only where there is a terminal.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "tests/support/run_command.h"

namespace reckon::test {
namespace {

const std::string kTiny = RECKON_SOURCE_DIR "/tests/golden/tiny.yaml";

/// Characters of a line of UTF-8 text.
std::size_t columns(const std::string& line) {
  return static_cast<std::size_t>(std::count_if(
      line.begin(), line.end(), [](char letter) { return (static_cast<unsigned char>(letter) & 0xC0) != 0x80; }));
}

TEST(Terminal, EveryShippedPlanFitsOnAScreenOf80By50) {
  for (const auto& entry : std::filesystem::directory_iterator(RECKON_SOURCE_DIR "/configs/plans")) {
    const std::string name = entry.path().stem().string();
    if (read_file(entry.path()).find("hardware: local") != std::string::npos) continue;  // needs a calibration
    const CommandResult result = run_command("reckon plan " + name);
    std::size_t lines = 0, widest = 0;
    std::istringstream text(result.out);
    for (std::string line; std::getline(text, line); ++lines) widest = std::max(widest, columns(line));
    EXPECT_GT(lines, 10u) << name << result.err;
    EXPECT_LE(lines, 48u) << name << ": two lines are left for the command and the gauge\n" << result.out;
    EXPECT_LE(widest, 80u) << name << "\n" << result.out;
  }
}

/// The command under a pseudo terminal; both outputs in `out`.
CommandResult on_a_terminal(const std::string& command) {
  return run_command("TERM=xterm script -qec '" + command + "' /dev/null");
}

TEST(Terminal, BarsAndColoursAppearOnATerminalOnly) {
  if (run_command("command -v script").exit_code != 0) GTEST_SKIP() << "there is no `script` to make a terminal with";
  const std::string seen = on_a_terminal("reckon plan " + kTiny).out;
  EXPECT_NE(seen.find("█"), std::string::npos) << seen;
  EXPECT_NE(seen.find("of the limit"), std::string::npos);
  const std::string piped = run_command("reckon plan " + kTiny).out;
  EXPECT_EQ(piped.find("█"), std::string::npos);
  EXPECT_EQ(piped.find("of the limit"), std::string::npos);
}

TEST(Terminal, SearchShowsRateAndRemainingTime) {
  if (run_command("command -v script").exit_code != 0) GTEST_SKIP() << "there is no `script` to make a terminal with";
  const std::string seen = on_a_terminal("reckon search llama2-70b-128xa100 --threads 1").out;
  EXPECT_NE(seen.find("plans/s"), std::string::npos) << seen.substr(0, 500);
  EXPECT_NE(seen.find("s left"), std::string::npos);
  EXPECT_EQ(run_command("reckon search " + kTiny).err, "");
}

}  // namespace
}  // namespace reckon::test
