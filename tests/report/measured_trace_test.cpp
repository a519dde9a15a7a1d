// The merged trace of two ranks, written by hand, against the rules of the Trace Event Format.
#include "report/measured_trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace reckon {
namespace {

using nlohmann::json;

/// Rank 0 computes for 3 us and sends at its end; rank 1 waits for it and computes for 2 us.
std::vector<RankTrace> two_ranks() {
  RankTrace first{0, 0, {"other", "forward.qkv"}, {{1, 5000, 8000}, {0, 8000, 8500}}, {{1, true, true, 8100}}};
  RankTrace second{1, 1, {"bubble", "forward.qkv"}, {{0, 5500, 8200}, {1, 8200, 10200}}, {{0, true, false, 8250}}};
  return {first, second};
}

std::vector<json> events(const std::string& phase, const std::vector<RankTrace>& traces) {
  std::vector<json> found;
  const json document = json::parse(measured_trace_json(traces));
  for (const json& event : document.at("traceEvents"))
    if (event.at("ph") == phase) found.push_back(event);
  return found;
}

TEST(MeasuredTrace, RanksAreProcessesOnOneClockThatStartsAtTheFirstSpan) {
  const auto spans = events("X", two_ranks());
  ASSERT_EQ(spans.size(), 4u);
  EXPECT_EQ(spans[0].at("name"), "forward.qkv");
  EXPECT_EQ(spans[0].at("cat"), "compute");
  EXPECT_EQ(spans[0].at("pid"), 0);
  EXPECT_DOUBLE_EQ(spans[0].at("ts"), 0.0);  // microseconds
  EXPECT_DOUBLE_EQ(spans[0].at("dur"), 3.0);
  EXPECT_EQ(spans[2].at("name"), "bubble");
  EXPECT_EQ(spans[2].at("cat"), "communication");
  EXPECT_EQ(spans[2].at("pid"), 1);
  EXPECT_DOUBLE_EQ(spans[2].at("ts"), 0.5);
  const auto names = events("M", two_ranks());
  EXPECT_EQ(names[0].at("args").at("name"), "rank 0 (stage 0)");
}

TEST(MeasuredTrace, AMessageIsAnArrowFromItsSendToItsArrival) {
  const auto starts = events("s", two_ranks()), ends = events("f", two_ranks());
  ASSERT_EQ(starts.size(), 1u);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(starts[0].at("id"), ends[0].at("id"));
  EXPECT_EQ(starts[0].at("pid"), 0);
  EXPECT_EQ(ends[0].at("pid"), 1);
  EXPECT_DOUBLE_EQ(starts[0].at("ts"), 3.1);
  EXPECT_DOUBLE_EQ(ends[0].at("ts"), 3.25);
}

TEST(MeasuredTrace, MessagesMatchInOrderAndThoseWithoutASenderAreLeftOut) {
  auto traces = two_ranks();
  traces[0].messages.push_back({1, true, true, 8300});
  for (const std::int64_t time : {8400, 8600}) traces[1].messages.push_back({0, true, false, time});
  const auto ends = events("f", traces);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_DOUBLE_EQ(ends[1].at("ts"), 3.4);
}

}  // namespace
}  // namespace reckon
