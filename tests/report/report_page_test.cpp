#include "report/report_page.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace reckon {
namespace {

Report small_report() {
  StepProfile profile;
  profile.plan.model.name = "llama-tiny";
  profile.step.seconds = Seconds(1.0);
  profile.time = {{"forward.qkv", Seconds(1.0), Seconds(1.0), {}}};
  profile.stages.emplace_back();
  profile.stages[0].memory.parameters = Bytes(600);
  Report report;
  report.title = "llama-tiny on 2 x core";
  report.verdict = "the plan fits";
  report.profiles = {profile};
  return report;
}

/// The one JSON document inside the page.
nlohmann::json data_of(const std::string& page) {
  const std::string open = R"(<script type="application/json" id="data">)";
  const std::size_t begin = page.find(open) + open.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(ReportPage, CarriesItsProfilesAsData) {
  const auto data = data_of(report_page(small_report()));
  EXPECT_EQ(data["profiles"][0]["schema"], "reckon.profile/1");
  EXPECT_EQ(data["profiles"][0]["stages"][0]["memory"]["parameters"], 600);
  EXPECT_TRUE(data["search"].is_null());
}

TEST(ReportPage, AHostileNameStaysText) {
  const std::string hostile = "</script><img src=x onerror=alert(1)>&amp;{data}{script}<!--\xff\"'";
  Report report = small_report();
  report.title = report.summary = report.verdict = hostile;
  report.profiles[0].plan.model.name = "</script><script>alert(1)</script><!--";
  report.profiles[0].time[0].component = "forward.</SCRIPT ><b>";
  report.profiles[0].assumptions = {"<svg onload=alert(1)>"};
  const std::string page = report_page(report), harmless = report_page(small_report());
  EXPECT_EQ(count(page, "<img"), 0u);
  EXPECT_EQ(count(page, "<svg"), 0u);
  EXPECT_EQ(count(page, "<script"), count(harmless, "<script"));
  EXPECT_EQ(count(page, "</script"), count(harmless, "</script"));
  EXPECT_EQ(count(page, "</SCRIPT"), 0u);
  EXPECT_EQ(count(page, "<!--"), count(harmless, "<!--"));
  EXPECT_NE(page.find("&lt;/script&gt;&lt;img src=x"), std::string::npos);
  EXPECT_EQ(data_of(page)["profiles"][0]["model"]["name"], "</script><script>alert(1)</script><!--");
  EXPECT_EQ(data_of(page)["profiles"][0]["time"][0]["component"], "forward.</SCRIPT ><b>");
}

TEST(ReportPage, NoPartOfItLetsANameOut) {
  const std::string hostile = "</script><script>alert(1)</script><!--\"'";
  Report report = small_report();
  StepProfile& profile = report.profiles[0];
  profile.plan.hardware.name = profile.plan.hardware.device.name = profile.plan.source_file = hostile;
  profile.plan.train.data = profile.plan.documents.source = hostile;
  profile.traffic = {{hostile, hostile, hostile, 1, 1}};
  profile.warnings = {hostile};
  profile.verdict.nearest = hostile;
  profile.verdict.breaks = hostile;
  report.roofline = Roofline{};
  report.roofline->ops = {{hostile, hostile, 1, 1, Seconds(1)}};
  report.memory_over_time = {{hostile, Seconds(2.0), {hostile}, {{5}}}};
  report.traffic = {{profile.traffic[0], true}};
  report.search = SearchResult{};
  report.search->rejected = {{hostile, 1, hostile}};
  report.search->plans = {{1, {{hostile, hostile}}, Seconds(1), Bytes(1), 1, 1, 1}};
  report.search->bound_by = hostile;
  const std::string page = report_page(report), harmless = report_page(small_report());
  for (const char* tag : {"<script", "</script", "<!--"}) EXPECT_EQ(count(page, tag), count(harmless, tag)) << tag;
  EXPECT_EQ(data_of(page)["search"]["rejected"][0]["reason"], hostile);
  EXPECT_EQ(data_of(page)["roofline"]["ops"][0]["name"], hostile);
}

TEST(ReportPage, ItsScriptsMakeNoMarkupOfText) {
  const std::string page = report_page(small_report());
  const std::size_t own = page.find("Building blocks of the page");  // after the chart library
  ASSERT_NE(own, std::string::npos);
  for (const char* way : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"})
    EXPECT_EQ(page.find(way, own), std::string::npos) << way;
}

TEST(ReportPage, MayLoadNothingAndIsSmall) {
  const std::string page = report_page(small_report());
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(page.find(" src="), std::string::npos);
  EXPECT_EQ(page.find("@import"), std::string::npos);
  EXPECT_EQ(page.find("<link rel=\"stylesheet\""), std::string::npos);
  EXPECT_NE(page.find("Released under the MIT License"), std::string::npos) << "the licence of the chart library";
  EXPECT_LT(page.size(), 1u << 20);
}

TEST(ReportPage, MemoryCurvesAddUp) {
  Report report = small_report();
  report.memory_over_time = {{"stage 0", Seconds(2.0), {"parameters", "transient"}, {{5, 5, 5}, {0, 7, 1}}}};
  const auto curve = data_of(report_page(report))["memory_over_time"][0];
  EXPECT_EQ(curve["total_bytes"], (std::vector<int>{5, 12, 6}));
  EXPECT_EQ(curve["bytes"]["transient"], (std::vector<int>{0, 7, 1}));
}

}  // namespace
}  // namespace reckon
