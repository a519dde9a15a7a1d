// Every command that README.md and the tutorials show is run, page by page and in order, and prints what the page says.
//
// A fenced block marked `console` holds commands after `$ ` and what they print, standard error first. In what they
// print "..." stands for anything: a number that differs from machine to machine, or on a line of its own any lines.
// A block marked `yaml NAME` or `bash NAME` is written to that file first. With RECKON_UPDATE_GOLDEN=1 blocks that do
// not match are written anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "tests/support/run_command.h"

namespace reckon::test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// `pattern` with "..." for any characters.
bool line_matches(const std::string& pattern, const std::string& line) {
  const std::size_t dots = pattern.find("...");
  if (dots == std::string::npos) return pattern == line;
  if (line.compare(0, dots, pattern, 0, dots) != 0) return false;
  const std::string rest = pattern.substr(dots + 3);
  for (std::size_t start = dots; start <= line.size(); ++start)
    if (line_matches(rest, line.substr(start))) return true;
  return false;
}

using Lines = std::vector<std::string>;

bool lines_match(const Lines& pattern, std::size_t p, const Lines& lines, std::size_t l) {
  if (p == pattern.size()) return l == lines.size();
  if (pattern[p] == "...") {
    for (std::size_t next = l; next <= lines.size(); ++next)
      if (lines_match(pattern, p + 1, lines, next)) return true;
    return false;
  }
  return l < lines.size() && line_matches(pattern[p], lines[l]) && lines_match(pattern, p + 1, lines, l + 1);
}

/// A page that is read once and, if its blocks are to be renewed, written again.
class Page {
 public:
  explicit Page(std::string path) : path_(std::move(path)), lines_(lines_of(read_file(path_))) {}

  /// Runs everything in a folder of its own; returns the number of commands.
  int run() {
    for (std::size_t at = 0; at < lines_.size(); ++at) {
      if (lines_[at].starts_with("```yaml ") || lines_[at].starts_with("```bash ")) write_block(at);
      else if (lines_[at] == "```console") run_block(at);
    }
    if (changed_) {
      std::ofstream file(path_, std::ios::binary);
      for (const std::string& line : lines_) file << line << "\n";
    }
    return commands_;
  }

 private:
  std::size_t end_of_block(std::size_t at) const {
    while (lines_[at] != "```") ++at;
    return at;
  }

  void write_block(std::size_t at) {
    std::string text;
    const std::size_t end = end_of_block(at + 1);
    for (std::size_t line = at + 1; line < end; ++line) text += lines_[line] + "\n";
    folder_.write(lines_[at].substr(std::string_view("```yaml ").size()), text);
  }

  void run_block(std::size_t at) {
    std::size_t line = at + 1;
    while (lines_[line] != "```") {
      ASSERT_TRUE(lines_[line].starts_with("$ ")) << path_ << ":" << line + 1 << ": a command was expected";
      const std::string command = lines_[line].substr(2);
      std::size_t end = line + 1;
      while (lines_[end] != "```" && !lines_[end].starts_with("$ ")) ++end;
      check(command, line + 1, end);
      line += 1 + (end - line - 1) + grown_;
    }
  }

  /// The output of `command` against lines first .. end-1.
  void check(const std::string& command, std::size_t first, std::size_t end) {
    grown_ = 0;
    ++commands_;
    const CommandResult result =
        run_command("export XDG_CACHE_HOME='" + folder_.path() + "/cache'; " + command, folder_.path());
    const Lines expected(lines_.begin() + static_cast<std::ptrdiff_t>(first),
                         lines_.begin() + static_cast<std::ptrdiff_t>(end));
    const Lines now = lines_of(result.err + result.out);
    if (lines_match(expected, 0, now, 0)) return;
    if (!std::getenv("RECKON_UPDATE_GOLDEN")) {
      ADD_FAILURE() << path_ << ":" << first << ": $ " << command << "\nprints now\n" << result.err << result.out;
      return;
    }
    lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(first),
                 lines_.begin() + static_cast<std::ptrdiff_t>(end));
    lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(first), now.begin(), now.end());
    grown_ = now.size() - expected.size();  // may wrap round: the sum is right
    changed_ = true;
  }

  std::string path_;
  Lines lines_;
  TemporaryFolder folder_;
  int commands_ = 0;
  std::size_t grown_ = 0;
  bool changed_ = false;
};

class Tutorial : public testing::TestWithParam<const char*> {};

TEST_P(Tutorial, CommandsPrintWhatThePageSays) {
  const std::string path = std::string(RECKON_SOURCE_DIR) + "/" + GetParam();
  const bool needs_ranks = read_file(path).find("$ reckon run") != std::string::npos;
  if (needs_ranks && !fs::exists(RECKON_BINARY_DIR "/reckon-rank")) GTEST_SKIP() << "this build has no reckon-rank";
  EXPECT_GT(Page(path).run(), 0) << path << " shows no command";
}

INSTANTIATE_TEST_SUITE_P(Pages, Tutorial,
                         testing::Values("README.md", "docs/tutorial_fit.md", "docs/tutorial_search.md",
                                         "docs/tutorial_simulate.md", "docs/tutorial_train.md", "docs/import.md",
                                         "docs/explain.md"),
                         [](const auto& page) {
                           std::string name = fs::path(page.param).stem().string();
                           return name;
                         });

TEST(TutorialPage, DotsStandForWhatDiffers) {
  EXPECT_TRUE(line_matches("step ... ms, loss ...", "step 4.9 ms, loss 5.5"));
  EXPECT_FALSE(line_matches("step ... s", "step 4.9 m"));
  EXPECT_TRUE(lines_match({"a", "...", "d"}, 0, {"a", "b", "c", "d"}, 0));
  EXPECT_TRUE(lines_match({"a", "..."}, 0, {"a"}, 0));
  EXPECT_FALSE(lines_match({"a", "...", "d"}, 0, {"a", "b"}, 0));
}

}  // namespace
}  // namespace reckon::test
