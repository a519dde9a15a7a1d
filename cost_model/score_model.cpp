#include <algorithm>
#include <cctype>
#include <regex>

#include "cost_model/score_cells.h"

namespace reckon {

namespace {

const std::string* named_part(const std::map<std::string, std::string>& by_part, const std::string& model) {
  const std::string name = normalized_model_name(model);
  for (const auto& [part, value] : by_part)
    if (name.find(normalized_model_name(part)) != std::string::npos) return &value;
  return nullptr;
}

/// GPT-2 and its relatives.
void set_gpt(ModelSpec& model, std::int64_t positions) {
  model.family = "gpt2";
  model.norm = Norm::layer_norm;
  model.norm_bias = model.qkv_bias = model.projection_bias = model.ffn_bias = true;
  model.activation = Activation::gelu;
  model.position = Position::learned;
  model.position_rows = positions;
}

/// A model that only the cells describe.
ModelSpec described_model(ScoreCells& row) {
  const ScoreSource& source = row.source();
  ModelSpec model;
  model.name = row.text("model").empty() ? "model" : row.text("model");
  model.layers = *row.count("n_layers");
  model.hidden = *row.count("hidden");
  model.heads = row.count_or("n_heads", std::max<std::int64_t>(1, model.hidden / 128));
  model.kv_heads = row.count_or("n_kv_heads", model.heads);
  model.ffn_hidden = row.count_or("ffn_hidden", 4 * model.hidden);
  model.gated_ffn = row.count_or("gated_mlp", model.ffn_hidden >= 4 * model.hidden ? 0 : 1) != 0;
  const std::string* vocabulary = named_part(source.vocabulary, model.name);
  if (row.empty("vocab") && vocabulary != nullptr) {
    row.assumed("vocab");
    model.vocabulary = whole_number(*vocabulary, "vocabulary." + model.name);
  } else {
    model.vocabulary = row.count_or("vocab", 50304);
  }
  model.tied_head = !model.gated_ffn;
  if (!model.gated_ffn) set_gpt(model, row.count("seq_len").value_or(0));
  return model;
}

void override_sizes(const ScoreCells& row, ModelSpec& model) {
  model.layers = row.count("n_layers").value_or(model.layers);
  model.hidden = row.count("hidden").value_or(model.hidden);
  model.heads = row.count("n_heads").value_or(model.heads);
  model.kv_heads = row.count("n_kv_heads").value_or(model.kv_heads);
  model.ffn_hidden = row.count("ffn_hidden").value_or(model.ffn_hidden);
  model.vocabulary = row.count("vocab").value_or(model.vocabulary);
  if (row.count("gated_mlp")) model.gated_ffn = *row.count("gated_mlp") != 0;
  if (row.count("hidden") || row.count("n_heads")) model.head_dim = 0;
}

}  // namespace

ModelSpec row_model(ScoreCells& row, const std::optional<ModelSpec>& known) {
  ModelSpec model = known ? *known : described_model(row);
  if (known) override_sizes(row, model);
  if (const std::string* tied = named_part(row.source().tied_models, row.text("model"))) model.tied_head = *tied == "1";
  if (model.head_dim == 0) model.head_dim = model.hidden / std::max<std::int64_t>(1, model.heads);
  if (model.position == Position::learned)
    model.position_rows = std::max(model.position_rows, row.count("seq_len").value_or(0));
  return model;
}

std::string normalized_model_name(const std::string& name) {
  std::string text = name;
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  static const std::regex endings("\\([^)]*\\)|truncated to [0-9]+ layers|\\bsft\\b");
  text = std::regex_replace(text, endings, "");
  std::erase_if(text, [](char c) { return c == '-' || c == '_' || c == '.' || c == ' '; });
  return text;
}

}  // namespace reckon
