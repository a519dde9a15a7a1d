// Which kind a file is, its tree, its reader, and what every imported plan needs besides.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>

#include "plan/exchange/foreign_reader.h"
#include "plan/exchange/shell_arguments.h"
#include "plan/exchange/toml_document.h"
#include "plan/hugging_face_config.h"
#include "plan/yaml_reader.h"

namespace reckon {

namespace {

struct KindName {
  ForeignKind kind;
  std::string_view name;
};
constexpr KindName kKinds[] = {{ForeignKind::hugging_face, "huggingface"}, {ForeignKind::megatron, "megatron"},
                               {ForeignKind::deepspeed, "deepspeed"},      {ForeignKind::torchtitan, "torchtitan"},
                               {ForeignKind::nanotron, "nanotron"},        {ForeignKind::accelerate, "accelerate"}};

constexpr std::string_view kAssumedHardware = "h100-80gb-8x";

/// JSON may be indented by tabs, which YAML forbids; outside quotes they are blanks.
std::string without_tabs(std::string_view text) {
  std::string plain(text);
  bool quoted = false;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (plain[i] == '\\' && quoted) ++i;
    else if (plain[i] == '"') quoted = !quoted;
    else if (plain[i] == '\t' && !quoted) plain[i] = ' ';
  }
  return plain;
}

char first_letter(std::string_view text) {
  for (const char letter : text)
    if (!std::isspace(static_cast<unsigned char>(letter))) return letter;
  return '\0';
}

YamlValue parse_tree(std::string_view text, const std::string& file) {
  return parse_yaml(first_letter(text) == '{' ? without_tabs(text) : std::string(text), file);
}

bool has_any(const YamlValue& document, std::initializer_list<const char*> keys) {
  return std::any_of(keys.begin(), keys.end(), [&](const char* key) { return document.find(key) != nullptr; });
}

std::optional<ForeignKind> kind_of_tree(const YamlValue& document) {
  if (document.kind != YamlValue::Kind::mapping) return std::nullopt;
  if (is_hugging_face_config(document)) return ForeignKind::hugging_face;
  if (has_any(document, {"distributed_type", "compute_environment", "fsdp_config"})) return ForeignKind::accelerate;
  if (has_any(document, {"parallelism"}) && has_any(document, {"tokens", "model"})) return ForeignKind::nanotron;
  if (has_any(document, {"zero_optimization", "train_batch_size", "train_micro_batch_size_per_gpu", "fp16", "bf16"}))
    return ForeignKind::deepspeed;
  if (has_any(document, {"MODEL_ARGS"})) return ForeignKind::megatron;
  return std::nullopt;
}

bool has_section_line(std::string_view text) {
  for (const char* name : {"[model]", "[training]", "[parallelism]", "[job]"})
    if (text.find(name) != std::string_view::npos) return true;
  return false;
}

/// YAML with `MODEL_ARGS:`, whose keys are the arguments themselves.
std::vector<SourceField> megatron_fields(std::string_view text, ForeignPlan& plan) {
  if (text.find("MODEL_ARGS:") != std::string_view::npos) {
    const YamlValue document = parse_yaml(text, plan.file);
    std::vector<SourceField> fields;
    for (const YamlEntry& entry : document.entries) {
      if (entry.key == "MODEL_ARGS" && entry.value.kind == YamlValue::Kind::mapping) {
        for (const YamlEntry& argument : entry.value.entries)
          fields.push_back({argument.key, argument.value, argument.line, argument.column});
      } else {
        plan.ignored.push_back({entry.key, "", entry.line, {}, "beside MODEL_ARGS"});
      }
    }
    return fields;
  }
  ShellArguments arguments = shell_arguments(text);
  plan.warnings = std::move(arguments.warnings);
  return std::move(arguments.options);
}

void expect_mapping(const YamlValue& document, const ForeignPlan& plan) {
  if (document.kind == YamlValue::Kind::mapping) return;
  throw ConfigError(
      {{fmt::format("a {} file consists of keys with values, found {}", name_of(plan.kind), describe(document)),
        plan.file,
        document.line,
        document.column,
        {}}});
}

void set_hardware(SourceFields& fields, const ImportOptions& options) {
  const std::string name = options.hardware.empty() ? std::string(kAssumedHardware) : options.hardware;
  fields.set("hardware", std::string_view(name));
  if (options.hardware.empty())
    fields.assume("hardware", name, "the file does not say on which devices; --hardware NAME does");
}

/// One line each; fields that the trainer fills in share one.
std::string assumed_lines(const std::vector<ForeignField>& assumed) {
  std::string text;
  std::map<std::string, std::vector<std::string>> open;  // by note
  for (const ForeignField& field : assumed) {
    if (field.value == "auto") open[field.note].push_back(field.key);
    else
      text += fmt::format("# Assumed: {}{} {}: {}\n", field.plan_key, field.key.empty() ? "" : " (" + field.key + ")",
                          field.value, field.note);
  }
  for (const auto& [note, keys] : open) text += fmt::format("# Assumed: auto, {}: {}\n", note, fmt::join(keys, ", "));
  return text;
}

std::string not_modelled_line(const std::vector<ForeignField>& fields) {
  if (fields.empty()) return "";
  std::vector<std::string> names;
  for (const ForeignField& field : fields) names.push_back(field.key);
  return fmt::format("# Not modelled: {}\n", fmt::join(names, ", "));
}

/// Key order of plan files, the version first.
YamlValue in_plan_order(const YamlValue& plan) {
  YamlValue ordered = YamlValue::mapping();
  ordered.add("reckon", YamlValue::scalar("1"));
  for (const char* key : {"model", "hardware", "nodes", "batch", "parallel", "documents", "precision", "kernels",
                          "activations", "gradients", "optimizer", "memory", "train"})
    if (const YamlValue* value = plan.find(key)) ordered.add(key, *value);
  return ordered;
}

}  // namespace

std::string_view name_of(ForeignKind kind) {
  for (const KindName& one : kKinds)
    if (one.kind == kind) return one.name;
  return "?";
}

std::optional<ForeignKind> foreign_kind(std::string_view name) {
  for (const KindName& one : kKinds)
    if (one.name == name) return one.kind;
  return std::nullopt;
}

std::vector<std::string> foreign_kinds() {
  std::vector<std::string> names;
  for (const KindName& one : kKinds) names.emplace_back(one.name);
  return names;
}

std::string stem_of(const std::string& file) {
  const std::filesystem::path path(file);
  const bool by_folder = path.filename() == "config.json" && path.has_parent_path();
  const std::string name = (by_folder ? path.parent_path().filename() : path.stem()).string();
  return name.empty() || name == "." || name == ".." ? "imported" : name;
}

void set_batch(SourceFields& fields, const BatchFields& given) {
  BatchFields batch = given;
  const std::int64_t rows = batch.micro * batch.replicas;  // both below 2^31
  if (batch.micro == 0 && batch.global > 0) {
    const std::int64_t passes = batch.accumulation * batch.replicas;
    if (passes == 0 || batch.global % passes != 0)
      return fields.contradiction(
          batch.global_name,
          fmt::format("{} is {}, no multiple of {} x ranks = {} x {}", fields.called(batch.global_name), batch.global,
                      batch.accumulation_name, batch.accumulation, batch.replicas));
    batch.micro = batch.global / passes;
  } else if (batch.global == 0) {
    if (static_cast<double>(rows) * static_cast<double>(batch.accumulation) > 1e9)
      return fields.wrong(batch.micro_name,
                          fmt::format("{} x {} x ranks = {} x {} x {} rows are too many", batch.micro_name,
                                      batch.accumulation_name, batch.micro, batch.accumulation, batch.replicas));
    batch.global = rows * batch.accumulation;
  } else if (batch.accumulation > 0 &&
             static_cast<double>(rows) * static_cast<double>(batch.accumulation) != static_cast<double>(batch.global)) {
    return fields.contradiction(
        batch.global_name,
        fmt::format("{} = {}, but {} x {} x ranks = {} x {} x {} = {}", fields.called(batch.global_name), batch.global,
                    fields.called(batch.micro_name), fields.called(batch.accumulation_name), batch.micro,
                    batch.accumulation, batch.replicas,
                    static_cast<double>(rows) * static_cast<double>(batch.accumulation)));
  }
  const std::int64_t step = batch.micro * batch.replicas;
  if (step <= 0 || batch.global <= 0)
    return fields.wrong(batch.micro_name,
                        fmt::format("{} and {} must be at least 1", batch.micro_name, batch.global_name));
  if (batch.global % step != 0) {
    const std::int64_t below = batch.global / step * step;
    return fields.contradiction(
        batch.global_name,
        fmt::format("{} is {}, no multiple of {} x ranks = {} x {} = {}; nearest: {}{}",
                    fields.called(batch.global_name), batch.global, fields.called(batch.micro_name), batch.micro,
                    batch.replicas, step, below > 0 ? fmt::format("{} or ", below) : "", below + step));
  }
  fields.set("batch.micro_batch", batch.micro);
  fields.set("batch.global_batch", batch.global);
}

ForeignKind detect_kind(std::string_view text, const std::string& file) {
  const bool toml = std::filesystem::path(file).extension() == ".toml";
  if (toml || (has_section_line(text) && first_letter(text) != '{')) return ForeignKind::torchtitan;
  bool already_a_plan = false;
  try {
    const YamlValue document = parse_tree(text, file);
    if (const auto kind = kind_of_tree(document)) return *kind;
    already_a_plan = document.find("reckon") != nullptr;
  } catch (const ConfigError&) {
    if (first_letter(text) == '{') throw;  // it means to be JSON; a shell script is no YAML either
  }
  if (text.find("--num-layers") != std::string_view::npos || text.find("--hidden-size") != std::string_view::npos)
    return ForeignKind::megatron;
  if (already_a_plan) throw ConfigError({{"this is a plan of reckon already; use it as it is", file, 1, 1, "reckon"}});
  throw ConfigError(
      {{fmt::format("this looks like none of {}; --from KIND says what it is", fmt::join(foreign_kinds(), ", ")),
        file,
        0,
        0,
        {}}});
}

ForeignPlan import_plan(std::string_view text, const std::string& file, const ImportOptions& options) {
  ForeignPlan plan;
  plan.file = file;
  plan.kind = options.kind ? *options.kind : detect_kind(text, file);
  YamlValue document;
  std::vector<SourceField> all;
  if (plan.kind == ForeignKind::megatron) {
    all = megatron_fields(text, plan);
    if (all.empty()) throw ConfigError({{"there is no argument such as --num-layers in this file", file, 0, 0, {}}});
  } else {
    document = plan.kind == ForeignKind::torchtitan ? parse_toml(text, file) : parse_tree(text, file);
    expect_mapping(document, plan);
    all = flattened(document);
  }
  SourceFields fields(std::move(all), plan);
  const ForeignReading reading{options, plan, fields};
  switch (plan.kind) {
    case ForeignKind::hugging_face: read_hugging_face(reading, document); break;
    case ForeignKind::megatron: read_megatron(reading); break;
    case ForeignKind::deepspeed: read_deepspeed(reading); break;
    case ForeignKind::torchtitan: read_torchtitan(reading); break;
    case ForeignKind::nanotron: read_nanotron(reading); break;
    case ForeignKind::accelerate: read_accelerate(reading); break;
  }
  set_hardware(fields, options);
  fields.finish();
  plan.plan = in_plan_order(plan.plan);
  return plan;
}

std::string foreign_plan_text(const ForeignPlan& plan) {
  std::string text = fmt::format("# Imported from {} ({}).\n", std::filesystem::path(plan.file).filename().string(),
                                 name_of(plan.kind));
  text += assumed_lines(plan.assumed);
  text += not_modelled_line(plan.not_modelled);
  for (const ForeignField& field : plan.not_understood)
    text += fmt::format("# Not understood: {} {}{}{}\n", field.key, field.value, field.note.empty() ? "" : ": ",
                        field.note);
  for (const std::string& key : plan.missing) text += fmt::format("# Missing: {}\n", key);
  for (char& letter : text)
    if (static_cast<unsigned char>(letter) < ' ' && letter != '\n') letter = ' ';
  return text + write_yaml(plan.plan);
}

}  // namespace reckon
