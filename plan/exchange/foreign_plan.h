// What a launch file of another tool says, in the words of a plan, and what became of each of its fields.
// Method and tables: docs/import.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/yaml_document.h"

namespace reckon {

enum class ForeignKind { hugging_face, megatron, deepspeed, torchtitan, nanotron, accelerate };

/// "huggingface", "megatron", "deepspeed", "torchtitan", "nanotron", "accelerate".
std::string_view name_of(ForeignKind kind);
std::optional<ForeignKind> foreign_kind(std::string_view name);
std::vector<std::string> foreign_kinds();

/// One field of the source file, or a value that nobody wrote there.
struct ForeignField {
  std::string key;       // in the source's own spelling; empty for what is assumed
  std::string value;     // as written, or as taken
  int line = 0;          // 0 = not in the file
  std::string plan_key;  // dotted key of the plan that it decides
  std::string note;
};

struct ForeignPlan {
  ForeignKind kind = ForeignKind::hugging_face;
  std::string file;
  YamlValue plan = YamlValue::mapping();     // keys of a plan file, as far as the source decides them
  std::vector<ForeignField> used;            // fields that decide a plan key
  std::vector<ForeignField> defaults;        // defaults of the source tool for fields that were left out
  std::vector<ForeignField> assumed;         // what neither the file nor its tool decides
  std::vector<ForeignField> not_modelled;    // change memory or time in a way that no plan key says: the note says how
  std::vector<ForeignField> ignored;         // known to change neither memory nor time of a step
  std::vector<ForeignField> not_understood;  // with the reason where one is known
  std::vector<std::string> warnings;
  std::vector<std::string> missing;  // plan keys without which the plan cannot be used
};

struct ImportOptions {
  std::optional<ForeignKind> kind;  // empty = found out from the text
  std::int64_t devices = 0;         // ranks that run; 0 = as the file says
  std::string hardware;             // empty = assumed
};

/// Throws ConfigError for text that is no file of the kind, RuleError for values that contradict each other; both name
/// file, line and the source's own key.
ForeignPlan import_plan(std::string_view text, const std::string& file, const ImportOptions& options);

/// The kind that the text looks like. Throws ConfigError when it is none of them.
ForeignKind detect_kind(std::string_view text, const std::string& file);

/// The plan file: a comment that says where it comes from and what is missing, then the keys.
std::string foreign_plan_text(const ForeignPlan& plan);

}  // namespace reckon
