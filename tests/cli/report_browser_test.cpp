// The HTML report in a real browser: it draws its charts, prints nothing to the console and asks for no network.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <regex>

#include "tests/support/run_command.h"

namespace reckon::test {
namespace {

const std::string kTiny = RECKON_SOURCE_DIR "/tests/golden/tiny.yaml";

/// Empty where there is none.
std::string browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"})
    if (run_command(std::string("command -v ") + name).exit_code == 0) return name;
  return "";
}

class ReportInABrowser : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    browser_ = browser();
    if (browser_.empty()) GTEST_SKIP() << "there is no chromium here; the Debian package chromium brings it";
  }

  std::string file(const std::string& name) const { return folder_.path() + "/" + name; }

  /// The page after its scripts ran. Console messages fail the test: the policy of the page turns any request into one.
  std::string drawn(const std::string& page) const {
    const CommandResult result = run_command(
        "timeout 60 " + browser_ + " --headless --no-sandbox --disable-gpu --user-data-dir=" + file("user") +
        " --window-size=" + std::to_string(GetParam()) +
        ",900 --virtual-time-budget=3000 --enable-logging=stderr --dump-dom file://" + page);
    EXPECT_EQ(result.err.find("CONSOLE"), std::string::npos) << result.err.substr(result.err.find("CONSOLE"), 400);
    return result.out;
  }

  /// Charts that the page says it made.
  static int charts(const std::string& dom) {
    std::smatch match;
    return std::regex_search(dom, match, std::regex("data-charts=\"([0-9]+)\"")) ? std::stoi(match[1]) : 0;
  }

  const TemporaryFolder folder_;
  std::string browser_;
};

TEST_P(ReportInABrowser, APlanHasItsCharts) {
  ASSERT_EQ(run_command("reckon plan " + kTiny + " --html " + file("plan.html")).exit_code, 0);
  const std::string dom = drawn(file("plan.html"));
  EXPECT_EQ(charts(dom), 6);  // memory by stage and over time, schedule, waterfall, roofline, traffic
  EXPECT_NE(dom.find(">FITS<"), std::string::npos);
}

TEST_P(ReportInABrowser, SearchComparisonAndDifferenceDraw) {
  ASSERT_EQ(run_command("reckon search " + kTiny + " --html " + file("search.html")).exit_code, 0);
  EXPECT_EQ(charts(drawn(file("search.html"))), 1);
  ASSERT_EQ(run_command("reckon compare " + kTiny + " parallel.zero=1 batch.micro_batch=2 --html " + file("diff.html"))
                .exit_code,
            0);
  EXPECT_EQ(charts(drawn(file("diff.html"))), 2);
  run_command("reckon plan " + kTiny + " --json >" + file("a.json"));
  run_command("reckon simulate " + kTiny + " sim.compute_scale=2 --json >" + file("b.json"));
  ASSERT_EQ(
      run_command("reckon compare " + file("a.json") + " " + file("b.json") + " --html " + file("ab.html")).exit_code,
      0);
  EXPECT_EQ(charts(drawn(file("ab.html"))), 7);  // and what the error of the step time consists of
}

TEST_P(ReportInABrowser, AHostileModelNameIsShownAsText) {
  const std::string name = "<img src=x onerror=alert(1)>";  // a model is named after its file
  folder_.write(name + ".yaml", read_file(RECKON_SOURCE_DIR "/configs/models/llama-tiny.yaml"));
  const CommandResult planned =
      run_command("reckon plan " + kTiny + " 'model=" + file(name) + ".yaml' --html " + file("h.html"));
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  const std::string dom = drawn(file("h.html"));
  EXPECT_EQ(dom.find("<img"), std::string::npos);
  EXPECT_NE(dom.find("&lt;img src=x onerror=alert(1)&gt; on 2 x"), std::string::npos);
  EXPECT_EQ(charts(dom), 6);
}

INSTANTIATE_TEST_SUITE_P(Widths, ReportInABrowser, testing::Values(1280, 420));

}  // namespace
}  // namespace reckon::test
