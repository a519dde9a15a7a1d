// A Hugging Face config.json says what the model is and nothing of how it is trained: the rest of the plan is assumed,
// small enough to be changed by hand.
#include <fmt/format.h>

#include <algorithm>

#include "plan/exchange/foreign_reader.h"
#include "plan/hugging_face_config.h"
#include "plan/spec_yaml.h"
#include "plan/yaml_reader.h"

namespace reckon {

namespace {

constexpr std::int64_t kUsualRow = 4096;

/// The tokens that the model's positions reach, at most a usual row.
std::int64_t row_length(const YamlValue& document) {
  for (const char* name : {"max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx"}) {
    const YamlValue* value = document.find(name);
    std::int64_t tokens = 0;
    try {
      if (value != nullptr && value->kind == YamlValue::Kind::scalar) from_yaml(*value, tokens);
    } catch (const ConfigError&) {
      continue;  // the model's reader has refused it if it matters
    }
    if (tokens > 0) return std::min(tokens, kUsualRow);
  }
  return kUsualRow;
}

}  // namespace

void read_hugging_face(ForeignReading reading, const YamlValue& document) {
  HuggingFaceReading config = read_hugging_face_fields(document, reading.plan.file);
  SourceFields& in = reading.fields;
  config.model.name = stem_of(reading.plan.file);
  in.set("model", model_yaml(config.model));
  for (const HuggingFaceField& field : config.fields) {
    ForeignField entry{field.name, {}, field.line, {}, {}};
    const YamlValue* value = document.find(field.name);
    if (value != nullptr && value->kind == YamlValue::Kind::scalar) entry.value = value->text;
    if (field.use == HuggingFaceUse::read) {
      entry.plan_key = "model";
      reading.plan.used.push_back(std::move(entry));
    } else if (field.use == HuggingFaceUse::no_influence) {
      entry.note = "changes neither shapes nor formats";
      reading.plan.ignored.push_back(std::move(entry));
    } else {
      reading.plan.not_understood.push_back(std::move(entry));
    }
  }
  for (const YamlEntry& entry : document.entries) {
    in.ignore({entry.key}, "");  // listed above
    in.ignore_below(entry.key + ".", "");
  }
  std::erase_if(reading.plan.ignored, [](const ForeignField& field) { return field.note.empty(); });
  const std::int64_t tokens = row_length(document), devices = std::max<std::int64_t>(1, reading.options.devices);
  in.set("batch.sequence_length", tokens);
  in.set("batch.micro_batch", std::int64_t{1});
  in.set("batch.global_batch", devices);
  in.set("parallel.data", devices);
  in.assume("batch.sequence_length", fmt::format("{}", tokens), "a config.json does not say how the model is trained");
  in.assume("batch.global_batch", fmt::format("{}", devices), "one row on each rank");
  in.assume("parallel.data", fmt::format("{}", devices), "--devices N and parallel.tensor=N say otherwise");
}

}  // namespace reckon
