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

// The rules that the viewers' importers rely on (Trace Event Format): known phases, numbers where numbers belong, every
// flow with both ends inside slices of the threads they name, and counters that never go back in time.
TEST(WriteTrace, EveryEventFollowsTheTraceEventFormat) {
  const nlohmann::json trace = trace_of(small_simulation());
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> slices;
  for (const auto& event : trace.at("traceEvents"))
    if (event.at("ph") == "X")
      slices[{event.at("pid"), event.at("tid")}].emplace_back(
          event.at("ts"), event.at("ts").get<double>() + event.at("dur").get<double>());
  std::map<int, std::pair<int, int>> flows;  // id -> starts, ends
  std::map<int, double> counted;             // rank -> time of the last counter
  for (const auto& event : trace.at("traceEvents")) {
    const std::string phase = event.at("ph");
    ASSERT_TRUE(phase == "X" || phase == "M" || phase == "s" || phase == "f" || phase == "C") << phase;
    ASSERT_TRUE(event.at("pid").is_number_integer() && event.at("tid").is_number_integer());
    if (phase == "M") continue;
    const double time = event.at("ts");
    EXPECT_GE(time, 0.0);
    if (phase == "C") {
      EXPECT_GE(time, counted[event.at("pid")]);
      counted[event.at("pid")] = time;
      for (const auto& value : event.at("args")) EXPECT_GE(value.get<double>(), 0.0);
    } else if (phase != "X") {
      ++(phase == "s" ? flows[event.at("id")].first : flows[event.at("id")].second);
      int around = 0;
      for (const auto& [begin, end] : slices[{event.at("pid"), event.at("tid")}]) around += begin <= time && time < end;
      EXPECT_EQ(around, 1) << event;
    }
  }
  EXPECT_EQ(flows.size(), 8u);
  for (const auto& [id, ends] : flows) EXPECT_EQ(ends, std::make_pair(1, 1)) << id;
  EXPECT_EQ(counted.size(), 2u);  // one rank of each stage
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
