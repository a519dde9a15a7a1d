// The fields of a foreign file as a flat list, and the bookkeeping of what became of each: readers ask for a field by
// its own name and say which plan key it decides. Every field ends in one list of ForeignPlan: one that no reader put
// anywhere is "not understood".
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/errors.h"
#include "plan/exchange/foreign_plan.h"
#include "plan/yaml_document.h"

namespace reckon {

struct SourceField {
  std::string key;  // as written, dotted where the file nests: "zero_optimization.stage"
  YamlValue value;
  int line = 0, column = 0;
  bool listed = false;  // what became of it stands in one of the lists
};

/// Every value of a tree under its dotted key; lists stay whole.
std::vector<SourceField> flattened(const YamlValue& document);

/// Names of one field, the preferred one first. `-` and `_` are the same.
using Names = std::initializer_list<std::string_view>;

class SourceFields {
 public:
  SourceFields(std::vector<SourceField> fields, ForeignPlan& plan);

  /// Present with a value (not null, not empty).
  bool has(std::string_view name) const { return look_up(name) != nullptr; }
  /// The raw field, which the reader then puts into a list by use(), ignore() or not_understood().
  const SourceField* find(std::string_view name) const { return look_up(name); }
  void use(std::string_view name, std::string_view plan_key, const std::string& note = {});
  bool is_auto(std::string_view name) const;

  /// The value, noted as deciding `plan_key`. Nothing when it is absent, "auto", or (an error) of another type. Whole
  /// numbers may be written 1e9.
  std::optional<std::int64_t> count(Names names, std::string_view plan_key, const std::string& note = {});
  std::optional<double> number(Names names, std::string_view plan_key, const std::string& note = {});
  std::optional<bool> flag(Names names, std::string_view plan_key, const std::string& note = {});
  std::optional<std::string> text(Names names, std::string_view plan_key, const std::string& note = {});

  /// The same with the source tool's default, which is noted when it acts; for "auto" it is taken as an assumption.
  std::int64_t count_or(Names names, std::string_view plan_key, std::int64_t otherwise, const std::string& note = {});
  double number_or(Names names, std::string_view plan_key, double otherwise, const std::string& note = {});
  bool flag_or(Names names, std::string_view plan_key, bool otherwise, const std::string& note = {});
  std::string text_or(Names names, std::string_view plan_key, std::string otherwise, const std::string& note = {});

  void ignore(Names names, std::string_view why);
  /// Fields that change memory or time in a way that no key of the plan says; `effect` says how.
  void not_modelled(Names names, std::string_view effect);
  void not_modelled_below(std::string_view start, std::string_view effect);
  /// What the source tool does where the file says nothing, and the plan cannot say.
  void note_default_not_modelled(std::string_view name, std::string value, std::string_view effect);
  /// Everything whose key starts with `start`.
  void ignore_below(std::string_view start, std::string_view why);
  void not_understood(std::string_view name, const std::string& why);
  /// A field that says "auto", with the value that is taken for it.
  void fill_in(std::string_view name, std::string_view plan_key, std::string_view value, std::string_view why);
  void note_default(std::string_view name, std::string value, std::string_view plan_key, const std::string& note = {});
  void assume(std::string_view plan_key, std::string value, const std::string& note);
  void warn(std::string message) { plan_.warnings.push_back(std::move(message)); }

  /// Sets a key of the plan, replacing what was there.
  void set(std::string_view plan_key, YamlValue value);
  void set(std::string_view plan_key, std::int64_t value);
  void set(std::string_view plan_key, double value);
  void set(std::string_view plan_key, bool value);
  void set(std::string_view plan_key, std::string_view value);
  void missing(std::string_view plan_key) { plan_.missing.emplace_back(plan_key); }

  /// A value that cannot be: reported with the field's place.
  void wrong(std::string_view name, std::string message);
  /// Values that contradict each other: reported at the place of `name`.
  void contradiction(std::string_view name, std::string message);
  /// "`--seq-length` (line 12)" as messages call a field; the bare name when the file lacks it.
  std::string called(std::string_view name) const;

  /// Names what nobody asked for, then throws what was found wrong.
  void finish();

 private:
  const SourceField* look_up(std::string_view name) const;
  bool is_open(const SourceField& field) const;
  SourceField* take(Names names, std::string_view plan_key, const std::string& note);
  bool take_open(Names names, std::string_view plan_key, const std::string& otherwise);
  /// The last field of that name, which goes into `list`; those before it and without value are ignored.
  void put(std::string_view name, std::vector<ForeignField>& list, std::string_view plan_key, const std::string& note);
  void put_all(std::string_view start, bool whole_name, std::vector<ForeignField>& list, std::string_view note);
  Diagnostic at(std::string_view name, std::string message) const;

  std::vector<SourceField> fields_;
  ForeignPlan& plan_;
  std::vector<Diagnostic> wrong_, contradictions_;
};

/// Of degrees of at least 1. Beyond 2^40 it stays there, which no rule of a plan lets through.
std::int64_t product_of(std::initializer_list<std::int64_t> degrees);

}  // namespace reckon
