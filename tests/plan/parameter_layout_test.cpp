#include "plan/parameter_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

namespace reckon {
namespace {

ModelSpec llama(std::int64_t layers, std::int64_t heads, std::int64_t kv_heads) {
  ModelSpec model;
  model.layers = layers;
  model.hidden = heads * 4;
  model.ffn_hidden = heads * 6;
  model.heads = heads;
  model.kv_heads = kv_heads;
  model.head_dim = 4;
  model.vocabulary = 103;  // prime: divisible by no degree
  return model;
}

Plan plan_of(const ModelSpec& model, std::int64_t tensor, std::int64_t pipeline, std::int64_t data) {
  Plan plan;
  plan.model = model;
  plan.parallel.tensor = tensor;
  plan.parallel.pipeline = pipeline;
  plan.parallel.data = data;
  return plan;
}

std::vector<Parameter> whole_model(const ModelSpec& model) {
  std::vector<Parameter> list = embedding_parameters(model);
  const auto append = [&](std::vector<Parameter> more) { list.insert(list.end(), more.begin(), more.end()); };
  for (std::int64_t layer = 0; layer < model.layers; ++layer) append(layer_parameters(model, layer));
  append(head_parameters(model));
  return list;
}

/// How many ranks hold each index of the split dimension of each weight.
std::map<std::string, std::map<std::int64_t, int>> holders(const Plan& plan) {
  std::map<std::string, std::map<std::int64_t, int>> held;
  const RankGrid grid(plan.parallel);
  for (std::int64_t rank = 0; rank < grid.world_size(); ++rank)
    for (const ParameterLayout& layout :
         {parameter_layout(plan, grid.coordinates(rank)), expert_parameter_layout(plan, grid.coordinates(rank))})
      for (const LocalParameter& parameter : layout.parameters) {
        const std::size_t dimension = parameter.whole.split == Split::columns ? 1 : 0;
        for (std::size_t other = 0; other < parameter.local_shape.size(); ++other)
          if (other != dimension) {
            EXPECT_EQ(parameter.local_shape[other], parameter.whole.shape[other]);
          }
        for (std::int64_t i = 0; i < parameter.local_shape[dimension]; ++i)
          ++held[parameter.whole.name][parameter.first + i];
      }
  return held;
}

/// Every index of every weight lies on the same, expected number of ranks; padding follows the last row.
void expect_exact_tiling(const Plan& plan) {
  const auto held = holders(plan);
  const std::int64_t replicas = plan.parallel.data * plan.context();
  for (const Parameter& parameter : whole_model(plan.model)) {
    ASSERT_TRUE(held.contains(parameter.name)) << parameter.name;
    std::int64_t copies = replicas;
    if (parameter.is_routed_expert()) copies /= plan.parallel.expert;
    if (parameter.split == Split::replicated) copies *= plan.parallel.tensor;
    if (parameter.split == Split::kv_rows && plan.parallel.tensor > plan.model.kv_heads)
      copies *= plan.parallel.tensor / plan.model.kv_heads;
    const bool table = parameter.name == "model.embed_tokens.weight";
    if (table && plan.model.tied_head && plan.parallel.pipeline > 1) copies *= 2;
    const std::int64_t extent = parameter.shape[parameter.split == Split::columns ? 1 : 0];
    for (std::int64_t i = 0; i < extent; ++i) ASSERT_EQ(held.at(parameter.name).at(i), copies) << parameter.name;
    const auto padding = static_cast<std::int64_t>(held.at(parameter.name).size()) - extent;
    const bool vocabulary = parameter.shape[0] == plan.model.vocabulary;
    const std::int64_t tensor = plan.parallel.tensor;
    EXPECT_EQ(padding, vocabulary ? (tensor - extent % tensor) % tensor : 0) << parameter.name;
  }
  EXPECT_EQ(held.size(), whole_model(plan.model).size());
}

TEST(ParameterLayout, OneRankHoldsTheModelInOrder) {
  const Plan plan = plan_of(llama(2, 4, 2), 1, 1, 1);
  const ParameterLayout layout = parameter_layout(plan, {});
  EXPECT_EQ(layout.elements, count_parameters(plan.model));
  EXPECT_EQ(layout.padded_elements, layout.elements);
  std::int64_t offset = 0;
  for (const LocalParameter& parameter : layout.parameters) {
    EXPECT_EQ(parameter.offset, offset);
    EXPECT_EQ(parameter.local_shape, parameter.whole.shape);
    offset += parameter.elements();
  }
}

TEST(ParameterLayout, SlicesTileEveryTensor) {
  for (const std::int64_t tensor : {1, 2, 3, 6}) expect_exact_tiling(plan_of(llama(3, 6, 6), tensor, 1, 2));
  expect_exact_tiling(plan_of(llama(5, 6, 3), 3, 2, 1));  // 5 layers over 2 stages
  expect_exact_tiling(plan_of(llama(2, 8, 2), 8, 1, 1));  // each KV head on four ranks
  Plan interleaved = plan_of(llama(7, 2, 1), 2, 3, 1);    // 7 layers over 6 virtual stages
  interleaved.parallel.chunks = 2;
  expect_exact_tiling(interleaved);
}

TEST(ParameterLayout, SlicesTileFamiliesWithBiasesNormsAndSinks) {
  ModelSpec model = llama(2, 6, 3);
  model.position = Position::learned;
  model.position_rows = 17;
  model.norm_bias = model.qkv_bias = model.projection_bias = model.ffn_bias = model.head_bias = true;
  model.qk_norm_full = model.attention_sinks = model.embedding_norm = true;
  expect_exact_tiling(plan_of(model, 3, 2, 1));
  expect_exact_tiling(plan_of(model, 6, 1, 1));
}

TEST(ParameterLayout, TiedTableLiesOnBothEnds) {
  ModelSpec model = llama(4, 4, 4);
  model.tied_head = true;
  const Plan plan = plan_of(model, 2, 4, 1);
  expect_exact_tiling(plan);
  const ParameterLayout last = parameter_layout(plan, {.pipeline = 3});
  EXPECT_EQ(last.parameters.back().whole.name, "model.embed_tokens.weight");
  EXPECT_TRUE(last.parameters.back().tied_copy);
  EXPECT_EQ(last.parameters.back().local_shape, (std::vector<std::int64_t>{52, 16}));  // ceil(103 / 2)
  EXPECT_FALSE(parameter_layout(plan, {.pipeline = 0}).parameters.front().tied_copy);
  for (const LocalParameter& parameter : parameter_layout(plan, {.pipeline = 1}).parameters)
    EXPECT_GE(parameter.layer, 0);
  // one rank that is both ends holds it once
  EXPECT_EQ(parameter_layout(plan_of(model, 1, 1, 1), {}).elements, count_parameters(model));
}

ModelSpec mixture() {
  ModelSpec model = llama(3, 4, 2);
  model.moe = {.experts = 6,
               .experts_per_token = 2,
               .expert_ffn_hidden = 4,
               .shared_experts = 1,
               .shared_ffn_hidden = 8,
               .dense_first_layers = 1};
  return model;
}

TEST(ParameterLayout, ExpertsAreDividedAndTiled) {
  for (const std::int64_t expert : {1, 2, 3, 6}) {
    Plan plan = plan_of(mixture(), 2, 1, 6);
    plan.parallel.expert = expert;
    expect_exact_tiling(plan);
  }
  Plan plan = plan_of(mixture(), 1, 1, 6);
  plan.parallel.expert = 3;
  std::set<std::int64_t> experts;
  for (const LocalParameter& parameter : expert_parameter_layout(plan, {.data = 4}).parameters)
    experts.insert(parameter.whole.expert);
  EXPECT_EQ(experts, (std::set<std::int64_t>{2, 3}));  // place 4 is rank 1 of its expert group
}

TEST(ParameterLayout, ShardsAreEqualAndCoverTheBuffer) {
  Plan plan = plan_of(llama(5, 3, 3), 3, 2, 7);
  plan.parallel.zero = 1;
  for (const std::int64_t pipeline : {0, 1}) {
    const ParameterLayout layout = parameter_layout(plan, {.pipeline = pipeline});
    EXPECT_EQ(layout.shards, 7);
    EXPECT_EQ(layout.padded_elements, layout.shard_elements * 7);
    EXPECT_GE(layout.padded_elements, layout.elements);
    EXPECT_LT(layout.padded_elements - layout.elements, 7);
  }
  plan.parallel.zero_group = 1;
  EXPECT_EQ(parameter_layout(plan, {}).shards, 1);
}

TEST(ParameterLayout, ShardsOfBucketsAreEqualPartsOfEveryPiece) {
  Plan plan = plan_of(llama(5, 3, 3), 1, 1, 7);
  plan.parallel.zero = 1;
  plan.gradients.bucket = Bytes(4003);  // 1000 fp32 gradients, of which 994 divide by 7
  const ParameterLayout layout = parameter_layout(plan, {});
  EXPECT_FALSE(layout.by_section);
  EXPECT_EQ(layout.units.back().count, 994);
  std::vector<int> held(static_cast<std::size_t>(layout.padded_elements), 0);
  for (std::int64_t shard = 0; shard < 7; ++shard) {
    std::int64_t sum = 0;
    for (const FlatRange& range : layout.shard_ranges(shard)) {
      sum += range.count;
      for (std::int64_t i = range.first; i < range.end(); ++i) ++held[static_cast<std::size_t>(i)];
    }
    EXPECT_EQ(sum, layout.shard_elements);
  }
  EXPECT_EQ(std::count(held.begin(), held.end(), 1), layout.padded_elements);  // every weight once
}

TEST(ParameterLayout, WithSplitGradientsUnitsAreSectionsAndTheTiedTable) {
  Plan plan = plan_of(llama(4, 3, 3), 1, 2, 5);
  plan.model.tied_head = true;
  plan.parallel.zero = 2;
  for (const std::int64_t pipeline : {1, 2}) {
    plan.parallel.pipeline = pipeline;
    const SectionElements parts = section_elements(plan.model, 1, 1);
    for (std::int64_t stage = 0; stage < pipeline; ++stage) {
      const ParameterLayout layout = parameter_layout(plan, {.pipeline = stage});
      std::vector<std::int64_t> expected, units;
      const auto add = [&](Section section) {
        for (const std::int64_t unit : held_units(plan, parts, section)) expected.push_back(unit);
      };
      if (stage == 0) add(Section::embedding);
      for (std::int64_t layer = 0; layer < 4 / pipeline; ++layer) add(Section::dense_layer);
      if (stage + 1 == pipeline) add(Section::head);
      for (const FlatRange& unit : layout.units) units.push_back(unit.count);
      std::sort(units.begin(), units.end());
      std::sort(expected.begin(), expected.end());
      EXPECT_EQ(units, expected) << "stage " << stage << " of " << pipeline;
      for (const LocalParameter& parameter : layout.parameters) {  // none lies in two units
        const FlatRange& unit = layout.units[layout.unit_of(parameter.offset)];
        EXPECT_LE(parameter.offset + parameter.elements(), unit.end()) << parameter.whole.name;
        EXPECT_EQ(unit.count % 5, 0);
      }
    }
  }
}

TEST(ParameterLayout, ExpertShardsSpreadOverTheRanksWithTheSameExperts) {
  ParallelSpec parallel;
  parallel.data = 4;
  parallel.ring = 3;
  parallel.zero = 1;
  parallel.expert = 6;
  EXPECT_EQ(zero_shards(parallel), 12);
  EXPECT_EQ(expert_zero_shards(parallel), 2);
  parallel.zero_group = 3;  // the ranks of one shard group all hold different experts
  EXPECT_EQ(expert_zero_shards(parallel), 1);
}

TEST(ParameterLayout, SectionElementsSumToTheLayouts) {
  ModelSpec tied_mixture = mixture();
  tied_mixture.tied_head = true;
  for (const auto& [tensor, expert] : std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {2, 3}, {4, 6}}) {
    Plan plan = plan_of(tied_mixture, tensor, 3, 6);
    plan.parallel.expert = expert;
    const SectionElements parts = section_elements(plan.model, tensor, expert);
    std::int64_t rest = 0, experts = 0;
    for (const std::int64_t stage : {0, 1, 2}) {
      const ParameterLayout all = parameter_layout(plan, {.pipeline = stage});
      rest += all.elements;
      experts += expert_parameter_layout(plan, {.pipeline = stage}).elements;
    }
    EXPECT_EQ(rest + experts, parts.embedding + parts.dense_layer + 2 * (parts.moe_layer + parts.layer_experts) +
                                  parts.head + parts.tied_table);
    if (expert > 1) {
      EXPECT_EQ(experts, 2 * parts.layer_experts);
    }
  }
}

TEST(ParameterLayout, RefusesWidthsThatDoNotDivide) {
  EXPECT_THROW(parameter_layout(plan_of(llama(1, 4, 4), 3, 1, 1), {}), std::logic_error);
  EXPECT_THROW(parameter_layout(plan_of(llama(1, 12, 4), 6, 1, 1), {}), std::logic_error);  // 4 KV heads, 6 ranks
}

}  // namespace
}  // namespace reckon
