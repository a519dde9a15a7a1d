// One core or all of them: the commands print the same documents.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/run_command.h"

namespace reckon::test {
namespace {

nlohmann::json document(const std::string& line) {
  auto json = nlohmann::json::parse(run_command(line + " --json").out, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << line;
  for (const char* key : {"seconds", "plans_per_second"})  // how long a search took
    if (json.is_object() && json["schema"] == "reckon.search/1") json.erase(key);
  return json;
}

TEST(SameAnswer, OnOneCoreAndOnAll) {
  if (run_command("taskset -c 0 true").exit_code != 0) GTEST_SKIP() << "processes cannot be bound to a core here";
  for (const std::string line :
       {"reckon plan llama3.1-405b-16384xh100", "reckon simulate agoq-agoq-32k sim.jitter=0.1",
        "reckon search llama3.1-8b-h100-node --devices 8", "reckon explain llama3.1-8b-h100-node"})
    EXPECT_EQ(document(line), document("taskset -c 0 " + line)) << line;
}

}  // namespace
}  // namespace reckon::test
