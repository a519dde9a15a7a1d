// The trace against the rules of the Trace Event Format, and the picture against those of XML.
#include "sim/write_trace.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "cost_model/estimate_op_times.h"
#include "cost_model/predict.h"
#include "plan/errors.h"
#include "sim/schedule_svg.h"
#include "tests/sim/plans.h"

namespace reckon {
namespace {

Simulation small_simulation() {
  Plan plan = test_plan(test_model(4));
  plan.model.name = "a \"quoted\" <name>\n";
  plan.parallel.pipeline = 2;
  plan.parallel.data = 2;
  plan.parallel.tensor = 2;
  return simulate_step(predict(plan), estimate_op_times(plan));
}

nlohmann::json trace_of(const Simulation& simulation) {
  std::ostringstream out;
  write_trace(simulation, out);
  return nlohmann::json::parse(out.str());
}

TEST(WriteTrace, SlicesOfAThreadNeverOverlapAndStayInTheStep) {
  const Simulation simulation = small_simulation();
  const double end = simulation.profile.step.seconds.value * 1e6;
  std::map<std::pair<int, int>, double> free;
  int slices = 0;
  const nlohmann::json trace = trace_of(simulation);
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    ++slices;
    double& now = free[{event.at("pid"), event.at("tid")}];
    EXPECT_GE(event.at("ts").get<double>(), now - 1e-6);  // one picosecond, the last digit
    EXPECT_GT(event.at("dur").get<double>(), 0.0);
    now = event.at("ts").get<double>() + event.at("dur").get<double>();
    EXPECT_LE(now, end + 1e-6);
  }
  EXPECT_GT(slices, 100);
}

TEST(WriteTrace, EveryMessageIsAnArrowForwardInTime) {
  const Simulation simulation = small_simulation();
  std::map<int, nlohmann::json> starts;
  int arrows = 0;
  const nlohmann::json trace = trace_of(simulation);
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == "s") starts[event.at("id")] = event;
    if (event.at("ph") != "f") continue;
    const auto& start = starts.at(event.at("id"));
    EXPECT_NE(start.at("pid"), event.at("pid"));
    EXPECT_LT(start.at("ts").get<double>(), event.at("ts").get<double>());
    ++arrows;
  }
  EXPECT_EQ(arrows, 2 * 4);  // 4 micro-batches, forward and backward over one boundary
}

TEST(WriteTrace, RanksStreamsAndMemoryAreNamed) {
  std::set<std::string> names;
  const nlohmann::json trace = trace_of(small_simulation());
  for (const auto& event : trace.at("traceEvents")) {
    names.insert(event.at("name"));
    if (event.at("ph") == "M" && event.at("args").contains("name"))
      names.insert(event.at("args").at("name").get<std::string>());
  }
  EXPECT_TRUE(names.contains("compute"));
  EXPECT_TRUE(names.contains("forward.qkv"));
  EXPECT_TRUE(names.contains("memory, bytes"));
  EXPECT_TRUE(names.contains("rank 0 (stage 0, stands for its whole stage)"));
}

TEST(WriteTrace, AFullDiskIsAnError) {
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  EXPECT_THROW(write_trace(small_simulation(), out), RunError);
}

TEST(ScheduleSvg, TagsBalanceAndTextIsEscaped) {
  const std::string svg = schedule_svg(small_simulation());
  std::vector<std::string> open;
  for (std::size_t place = svg.find('<'); place != std::string::npos; place = svg.find('<', place + 1)) {
    const std::size_t end = svg.find('>', place);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = svg.substr(place + 1, end - place - 1);
    const std::string name = tag.substr(0, tag.find(' '));
    if (tag.front() == '/') {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ("/" + open.back(), name);
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
  }
  EXPECT_TRUE(open.empty());
  EXPECT_NE(svg.find("&lt;name&gt;"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

}  // namespace
}  // namespace reckon
