#include "plan/model_yaml.h"

#include <string_view>

#include "plan/check_model.h"
#include "plan/spec_yaml.h"

namespace reckon {

namespace {

/// Calls visit(key, field) for every key of a model file but for the groups moe and mla.
template <class Model, class Visit>
void visit_model(Model& model, Visit visit) {
  visit("name", model.name);
  visit("aliases", model.aliases);
  visit("source", model.source);
  visit("family", model.family);
  visit("layers", model.layers);
  visit("hidden", model.hidden);
  visit("ffn_hidden", model.ffn_hidden);
  visit("heads", model.heads);
  visit("kv_heads", model.kv_heads);
  visit("head_dim", model.head_dim);
  visit("vocabulary", model.vocabulary);
  visit("position_rows", model.position_rows);
  visit("position_offset", model.position_offset);
  visit("norm", model.norm);
  visit("norm_bias", model.norm_bias);
  visit("norm_epsilon", model.norm_epsilon);
  visit("activation", model.activation);
  visit("gated_ffn", model.gated_ffn);
  visit("position", model.position);
  visit("rope_theta", model.rope_theta);
  visit("rope_fraction", model.rope_fraction);
  visit("rope_scaling", model.rope_scaling);
  visit("rope_scaling_factor", model.rope_scaling_factor);
  visit("rope_low_frequency_factor", model.rope_low_frequency_factor);
  visit("rope_high_frequency_factor", model.rope_high_frequency_factor);
  visit("rope_original_positions", model.rope_original_positions);
  visit("sliding_window", model.sliding_window);
  visit("sliding_window_every", model.sliding_window_every);
  visit("tied_head", model.tied_head);
  visit("qkv_bias", model.qkv_bias);
  visit("projection_bias", model.projection_bias);
  visit("ffn_bias", model.ffn_bias);
  visit("head_bias", model.head_bias);
  visit("qk_norm", model.qk_norm);
  visit("qk_norm_full", model.qk_norm_full);
  visit("parallel_block", model.parallel_block);
  visit("pre_norm", model.pre_norm);
  visit("post_norm", model.post_norm);
  visit("block_norms", model.block_norms);
  visit("embedding_norm", model.embedding_norm);
  visit("attention_sinks", model.attention_sinks);
  visit("attention_softcap", model.attention_softcap);
  visit("logit_softcap", model.logit_softcap);
}

template <class Moe, class Visit>
void visit_moe(Moe& moe, Visit visit) {
  visit("experts", moe.experts);
  visit("experts_per_token", moe.experts_per_token);
  visit("expert_ffn_hidden", moe.expert_ffn_hidden);
  visit("shared_experts", moe.shared_experts);
  visit("shared_ffn_hidden", moe.shared_ffn_hidden);
  visit("dense_first_layers", moe.dense_first_layers);
  visit("every", moe.every);
  visit("shared_expert_gate", moe.shared_expert_gate);
  visit("router_bias", moe.router_bias);
  visit("score_correction_bias", moe.score_correction_bias);
  visit("active_without_embedding", moe.active_without_embedding);
  visit("expert_bias", moe.expert_bias);
}

template <class Mla, class Visit>
void visit_mla(Mla& mla, Visit visit) {
  visit("q_lora_rank", mla.q_lora_rank);
  visit("kv_lora_rank", mla.kv_lora_rank);
  visit("qk_nope_head_dim", mla.qk_nope_head_dim);
  visit("qk_rope_head_dim", mla.qk_rope_head_dim);
  visit("v_head_dim", mla.v_head_dim);
}

/// Reads the fields visited; `good` becomes false when a value is wrong.
auto reading(YamlReader& reader, bool& good) {
  return [&](std::string_view key, auto& field) {
    if (reader.has(key) && !reader.read(key, field)) good = false;
  };
}

/// The fields of a struct that differ from those of a default one, in the same order of visits.
template <class Spec, class VisitAll>
YamlValue differences(const Spec& spec, VisitAll visit_all) {
  const Spec defaults;
  std::vector<YamlEntry> usual;
  visit_all(defaults, [&](std::string_view key, const auto& field) {
    usual.push_back({std::string(key), 0, 0, to_yaml(field)});
  });
  YamlValue mapping = YamlValue::mapping();
  std::size_t i = 0;
  visit_all(spec, [&](std::string_view key, const auto& field) {
    YamlValue value = to_yaml(field);
    const YamlValue& standard = usual[i++].value;
    const bool same = value.text == standard.text && value.items.empty() && standard.items.empty();
    if (!same) mapping.add(std::string(key), std::move(value));
  });
  return mapping;
}

}  // namespace

ModelSpec read_model_keys(YamlReader& reader) {
  ModelSpec model;
  bool good = true;
  for (const std::string_view key : {"layers", "hidden", "heads", "vocabulary"})
    if (std::int64_t unused = 0; !reader.has(key)) good = reader.require(key, unused);
  visit_model(model, reading(reader, good));
  if (auto moe = reader.child("moe")) {
    visit_moe(model.moe, reading(*moe, good));
    moe->finish();
    if (good && model.moe.experts == 0) {
      reader.error("moe", "moe.experts is 0; leave moe out for a model without experts");
      good = false;
    }
  }
  if (auto mla = reader.child("mla")) {
    visit_mla(model.mla, reading(*mla, good));
    mla->finish();
    if (good && model.mla.kv_lora_rank == 0) {
      reader.error("mla", "mla.kv_lora_rank is 0; leave mla out for ordinary attention");
      good = false;
    }
  }
  reader.finish();
  fill_derived_sizes(model);
  if (good)
    for (const Diagnostic& problem : check_model(model))
      reader.error(problem.key.substr(0, problem.key.find('.')), problem.message);
  return model;
}

std::vector<std::string> model_keys() {
  std::vector<std::string> keys;
  const auto collect = [&](std::string_view group) {
    return [&keys, group](std::string_view key, const auto&) { keys.push_back(std::string(group) + std::string(key)); };
  };
  const ModelSpec model;
  visit_model(model, collect(""));
  visit_moe(model.moe, collect("moe."));
  visit_mla(model.mla, collect("mla."));
  return keys;
}

YamlValue model_yaml(const ModelSpec& model) {
  YamlValue mapping = differences(model, [](auto& spec, auto visit) { visit_model(spec, visit); });
  if (model.is_moe())
    mapping.add("moe", differences(model.moe, [](auto& spec, auto visit) { visit_moe(spec, visit); }));
  if (model.is_mla())
    mapping.add("mla", differences(model.mla, [](auto& spec, auto visit) { visit_mla(spec, visit); }));
  return mapping;
}

}  // namespace reckon
