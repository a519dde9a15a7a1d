#include "plan/describe_model.h"

#include <gtest/gtest.h>

#include "plan/load_plan.h"
#include "plan/parameters.h"

namespace reckon {
namespace {

TEST(DescribeModel, ComponentsSumToTheCount) {
  const ConfigPaths shipped{std::string(RECKON_SOURCE_DIR) + "/configs", {}};
  for (const std::string& name : known_models(shipped)) {
    const ModelSpec model = load_model(name, shipped);
    std::int64_t sum = 0;
    for (const ComponentParameters& row : parameters_by_component(model)) sum += row.parameters;
    EXPECT_EQ(sum, count_parameters(model)) << name;
  }
}

TEST(DescribeModel, UnreadFieldsAreNamed) {
  ModelSpec model;
  EXPECT_EQ(unread_fields_warning(model), "");
  model.unread_fields = {"clip_qkv", "strange"};
  EXPECT_NE(unread_fields_warning(model).find("left out: clip_qkv, strange"), std::string::npos);
}

TEST(DescribeModel, MixtureByHand) {
  ModelSpec model;
  model.layers = 3;
  model.hidden = 8;
  model.ffn_hidden = 20;
  model.heads = 4;
  model.kv_heads = 2;
  model.head_dim = 2;
  model.vocabulary = 11;
  model.moe = {.experts = 6, .experts_per_token = 2, .expert_ffn_hidden = 5, .dense_first_layers = 1};
  const std::vector<ComponentParameters> table = parameters_by_component(model);
  ASSERT_EQ(table.size(), 7u);
  EXPECT_EQ(table[1].component, "attention");
  EXPECT_EQ(table[1].layers, 3);
  EXPECT_EQ(table[1].parameters, 3 * (8 * 8 + 2 * 4 * 8 + 8 * 8));
  EXPECT_EQ(table[3].component, "experts");
  EXPECT_EQ(table[3].layers, 2);
  EXPECT_EQ(table[3].parameters, 2 * 6 * 3 * 5 * 8);
  EXPECT_EQ(table[4].component, "ffn");
  EXPECT_EQ(table[4].parameters, 3 * 20 * 8);
}

}  // namespace
}  // namespace reckon
