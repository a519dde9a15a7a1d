// The number of threads decides how long search and simulation take, and nothing else: the documents that the commands
// print are the same to the byte, but for the time the search itself took.
#include <gtest/gtest.h>

#include <string>

#include "cost_model/estimate_op_times.h"
#include "cost_model/predict.h"
#include "cost_model/search.h"
#include "report/result_json.h"
#include "report/simulation_json.h"
#include "sim/simulate_step.h"
#include "tests/sim/plans.h"

namespace reckon {
namespace {

std::string search_document(const Plan& plan, int threads) {
  SearchOptions options;
  options.threads = threads;
  options.devices = 16;
  options.top = 5;
  SearchResult result = search(plan, options);
  result.seconds = Seconds(1.0);
  result.plans_per_second = 1.0;
  return search_json(result);
}

TEST(ThreadCount, SearchWritesTheSameDocument) {
  Plan dense = test_plan(test_model(12, 4096, 32));
  dense.batch = {4096, 1, 32};
  Plan experts = dense;
  experts.model.moe.experts = 8;
  experts.model.moe.experts_per_token = 2;
  experts.model.moe.expert_ffn_hidden = 4096;
  for (const Plan& plan : {dense, experts}) {
    const std::string one = search_document(plan, 1);
    EXPECT_NE(one.find("parallel.tensor"), std::string::npos);  // found something
    for (const int threads : {2, 5}) EXPECT_EQ(search_document(plan, threads), one) << threads << " threads";
  }
}

std::string simulation_document(const Plan& plan, int threads) {
  SimulationOptions options;
  options.samples = 7;  // divides evenly among none of the thread counts but one
  options.threads = threads;
  const Simulation simulation = simulate_step(predict(plan), estimate_op_times(plan), options);
  return simulation_json(simulation.profile, {simulation.events,
                                              simulation.simulated_ranks,
                                              simulation.critical_path,
                                              {},
                                              simulation.step_samples,
                                              simulation.out_of_memory});
}

TEST(ThreadCount, SimulationWithJitterWritesTheSameDocument) {
  Plan plan = test_plan(test_model(8));
  plan.batch = {4096, 1, 16};
  plan.parallel.data = 2;
  plan.parallel.pipeline = 4;
  plan.parallel.tensor = 2;
  plan.parallel.sequence = true;
  plan.sim.jitter = 0.1;
  plan.sim.slow_ranks = {{3, 1.2}};
  plan = resolve(plan);
  const std::string one = simulation_document(plan, 1);
  for (const int threads : {2, 5}) EXPECT_EQ(simulation_document(plan, threads), one) << threads << " threads";
  plan.sim.seed = 2;
  EXPECT_NE(simulation_document(plan, 1), one);  // the samples are in the document
}

}  // namespace
}  // namespace reckon
