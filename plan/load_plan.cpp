// Plan text -> Plan: the file's keys and the overrides become one list of assignments, the preset's come first, then
// each key's setter runs. Everything that is wrong is collected and thrown at once.
#include "plan/load_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "plan/method_preset.h"
#include "plan/plan_schema.h"
#include "plan/spec_yaml.h"
#include "plan/yaml_document.h"
#include "plan/yaml_reader.h"

namespace reckon {

namespace {

/// `path` is a plan key, or lies below `model`, `hardware` or a mapping such as `activations.classes`.
struct Assignment {
  std::string path;
  YamlValue value;
  std::string override_text;  // "parallel.tensor=4"; empty for keys of a file
};

class PlanLoader {
 public:
  PlanLoader(std::string file, const ConfigPaths& paths) : file_(std::move(file)), paths_(paths) {}

  Plan load(std::string_view yaml, const std::vector<std::string>& overrides) {
    const YamlValue document = parse_yaml(yaml, file_);
    if (document.kind == YamlValue::Kind::null) {
      throw ConfigError({{"the file is empty; a plan needs at least model, hardware and batch", file_, 0, 0, {}}});
    }
    if (document.kind != YamlValue::Kind::mapping) {
      throw ConfigError({{"a plan consists of keys with values (key: value), found " + describe(document),
                          file_,
                          document.line,
                          document.column,
                          {}}});
    }
    collect(document, "");
    for (const std::string& text : overrides) collect_override(text);
    prepend_preset();
    for (const Assignment& assignment : assignments_) apply(assignment);
    follow_defaults();
    check_required();
    load_model_and_hardware();
    if (!errors_.empty()) throw ConfigError(in_file_order());
    plan_.source_file = file_;
    return std::move(plan_);
  }

 private:
  /// Errors of the plan file by place, those without one last; then overrides and other files as they came.
  std::vector<Diagnostic> in_file_order() {
    const auto order = [&](const Diagnostic& one) {
      const bool own = one.file == file_;
      return own ? std::tuple(0, one.line == 0, one.line, one.column) : std::tuple(1, false, 0, 0);
    };
    std::stable_sort(errors_.begin(), errors_.end(),
                     [&](const Diagnostic& a, const Diagnostic& b) { return order(a) < order(b); });
    return std::move(errors_);
  }

  static bool is_section(std::string_view path) {
    const std::string start = std::string(path) + ".";
    return std::any_of(plan_keys().begin(), plan_keys().end(),
                       [&](const PlanKey& key) { return key.path.starts_with(start); });
  }

  /// Splits the mappings of a file into assignments of keys.
  void collect(const YamlValue& mapping, const std::string& prefix) {
    std::set<std::string> seen;
    for (const YamlEntry& entry : mapping.entries) {
      const std::string path = prefix.empty() ? entry.key : prefix + "." + entry.key;
      if (!seen.insert(path).second || (is_assigned(path) && find_plan_key(path) != nullptr)) {
        errors_.push_back({fmt::format("the key '{}' is given twice", path), file_, entry.line, entry.column, path});
      } else if (find_plan_key(path) != nullptr) {
        assignments_.push_back({path, entry.value, {}});
      } else if (!is_section(path)) {
        errors_.push_back({unknown_plan_key(path), file_, entry.line, entry.column, path});
      } else if (entry.value.kind == YamlValue::Kind::mapping) {
        collect(entry.value, path);
      } else if (entry.value.kind != YamlValue::Kind::null) {
        errors_.push_back(
            {fmt::format("'{}' holds keys with values (key: value), found {}", path, describe(entry.value)), file_,
             entry.value.line, entry.value.column, path});
      }
    }
  }

  bool is_assigned(const std::string& path) const {
    return std::any_of(assignments_.begin(), assignments_.end(),
                       [&](const Assignment& one) { return one.path == path; });
  }

  /// "a.b=value" -> assignment. The value is YAML, except where the key holds a text: that is taken as it is.
  void collect_override(const std::string& text) {
    const std::size_t equals = text.find('=');
    const auto fail = [&](const std::string& message) { errors_.push_back({message, {}, 0, 0, {}}); };
    if (const std::string problem = unprintable(text); !problem.empty()) return fail(problem);
    if (equals == std::string::npos || equals == 0) {
      return fail(fmt::format("'{}' is not an override; write key=value, such as parallel.tensor=4", text));
    }
    std::string path = text.substr(0, equals);
    std::replace(path.begin(), path.end(), '-', '_');
    const std::string value = text.substr(equals + 1);
    const PlanKey* key = find_plan_key(path);
    const bool is_text = key != nullptr && (key->type == "text" || (key->set == nullptr && !value.starts_with("{")));
    try {
      Assignment assignment{path, is_text ? YamlValue::quoted_scalar(value) : without_place(parse_yaml(value, {})),
                            text};
      if (key == nullptr && is_section(path) && assignment.value.kind == YamlValue::Kind::mapping) {
        for (const YamlEntry& entry : assignment.value.entries) {
          collect_override(path + "." + entry.key + "=" + write_value(entry.value));
        }
      } else if (key == nullptr && parent_mapping(path) == nullptr) {
        fail(fmt::format("{}: {}", text, unknown_plan_key(path)));
        errors_.back().key = path;
      } else {
        assignments_.push_back(std::move(assignment));
      }
    } catch (const ConfigError& error) {
      add(error, path, YamlValue{}, text);
    }
  }

  /// What an override says has no place in the file.
  static YamlValue without_place(YamlValue value) {
    value.line = value.column = 0;
    for (YamlValue& item : value.items) item = without_place(std::move(item));
    for (YamlEntry& entry : value.entries) {
      entry.line = entry.column = 0;
      entry.value = without_place(std::move(entry.value));
    }
    return value;
  }

  static std::string write_value(YamlValue value) {
    value.flow = true;
    std::string text = write_yaml(value);
    text.pop_back();
    return text;
  }

  /// The key whose mapping holds `path`: "activations.classes" for "activations.classes.gate", "model" for
  /// "model.layers".
  static const PlanKey* parent_mapping(std::string_view path) {
    for (const PlanKey& key : plan_keys()) {
      if ((key.set == nullptr || key.type == "mapping") && path.starts_with(key.path + ".")) return &key;
    }
    return nullptr;
  }

  /// The settings of the last `method` go before everything else.
  void prepend_preset() {
    std::string method;
    for (const Assignment& assignment : assignments_) {
      if (assignment.path == "method") method = assignment.value.text;
    }
    std::vector<Assignment> own = std::move(assignments_);
    assignments_.clear();
    for (const std::string& setting : method_settings(method)) collect_override(setting);
    std::move(own.begin(), own.end(), std::back_inserter(assignments_));
  }

  void apply(const Assignment& assignment) {
    const PlanKey* key = find_plan_key(assignment.path);
    try {
      if (key == nullptr) {
        key = parent_mapping(assignment.path);
        if (key->set != nullptr)
          key->set(nested(assignment.path.substr(key->path.size() + 1), assignment.value), plan_);
      } else if (key->set != nullptr) {
        if (key->clear != nullptr) key->clear(plan_);
        key->set(assignment.value, plan_);
      }
    } catch (const ConfigError& error) {
      add(error, assignment.path, assignment.value, assignment.override_text);
    }
  }

  /// "a.b" and a value -> {a: {b: value}}
  static YamlValue nested(std::string_view path, YamlValue value) {
    const std::size_t dot = path.find('.');
    YamlValue mapping = YamlValue::mapping();
    mapping.add(std::string(path.substr(0, dot)),
                dot == std::string_view::npos ? std::move(value) : nested(path.substr(dot + 1), std::move(value)));
    return mapping;
  }

  /// Defaults that depend on another key.
  void follow_defaults() {
    const NumberFormat compute = plan_.precision.compute;
    if (!is_assigned("activations.stored")) {
      plan_.activations.stored = payload_bits(compute) >= 16 ? compute : NumberFormat::bf16;
    }
    if (!is_assigned("gradients.wire")) plan_.gradients.wire = plan_.gradients.stored;
  }

  void check_required() {
    for (const PlanKey& key : plan_keys()) {
      if (key.required && !is_assigned(key.path)) {
        errors_.push_back({fmt::format("the key '{}' is missing", key.path), file_, 0, 0, key.path});
      }
    }
  }

  void load_model_and_hardware() {
    load_reference<ModelSpec>("model", plan_.model, load_model, read_model, model_yaml);
    load_reference<HardwareSpec>("hardware", plan_.hardware, load_hardware, read_hardware, hardware_yaml);
  }

  /// A model or hardware: by name or path, or as a mapping (with or without `base`), then patched by overrides below
  /// it.
  template <class Spec, class Load, class Read, class Write>
  void load_reference(const std::string& key, Spec& target, Load load_named, Read read, Write write) {
    const Assignment* reference = nullptr;
    std::vector<const Assignment*> patches;
    for (const Assignment& assignment : assignments_) {
      if (assignment.path == key) reference = &assignment, patches.clear();
      if (assignment.path.starts_with(key + ".")) patches.push_back(&assignment);
    }
    if (reference == nullptr) return;
    try {
      const YamlValue& value = reference->value;
      if (value.kind != YamlValue::Kind::mapping) {
        target = load_named(located(text_of(value)), paths_);
        if (patches.empty()) return;
      }
      YamlValue tree = value.kind == YamlValue::Kind::mapping ? value : write(target);
      if (const YamlValue* base = tree.find("base"); base != nullptr) {
        YamlValue whole = write(load_named(located(text_of(*base)), paths_));
        std::erase_if(tree.entries, [](const YamlEntry& entry) { return entry.key == "base"; });
        merge(whole, tree);
        tree = std::move(whole);
      }
      for (const Assignment* patch : patches) merge(tree, nested(patch->path.substr(key.size() + 1), patch->value));
      target = read(tree, file_);
    } catch (const ConfigError& error) {
      add_reference_error(error, key, *reference, patches);
    }
  }

  static std::string text_of(const YamlValue& value) {
    std::string text;
    from_yaml(value, text);
    return text;
  }

  /// A relative path is looked for beside the plan file first.
  std::string located(const std::string& reference) const {
    const std::filesystem::path path(reference);
    const std::filesystem::path beside = std::filesystem::path(file_).parent_path() / path;
    std::error_code error;
    if (path.is_relative() && std::filesystem::is_regular_file(beside, error)) return beside.string();
    return reference;
  }

  static void merge(YamlValue& whole, const YamlValue& patch) {
    for (const YamlEntry& entry : patch.entries) {
      const auto found = std::find_if(whole.entries.begin(), whole.entries.end(),
                                      [&](const YamlEntry& one) { return one.key == entry.key; });
      if (found == whole.entries.end()) {
        whole.entries.push_back(entry);
      } else if (found->value.kind == YamlValue::Kind::mapping && entry.value.kind == YamlValue::Kind::mapping) {
        merge(found->value, entry.value);
      } else {
        *found = entry;
      }
    }
  }

  /// Adds the place and key of an assignment to what its setter said.
  void add(const ConfigError& error, const std::string& path, const YamlValue& value,
           const std::string& override_text) {
    for (Diagnostic diagnostic : error.diagnostics()) {
      diagnostic.key = path;
      if (!override_text.empty()) {
        diagnostic = {fmt::format("{}: {}", override_text, diagnostic.message), {}, 0, 0, path};
      } else {
        if (diagnostic.line == 0) diagnostic.line = value.line, diagnostic.column = value.column;
        diagnostic.file = file_;
      }
      errors_.push_back(std::move(diagnostic));
    }
  }

  /// The overrides that an error of `key` is to be blamed on: that of this key, else all below `model` or `hardware`,
  /// because sizes depend on each other.
  static std::string blamed(const std::string& key, const Assignment& reference,
                            const std::vector<const Assignment*>& patches) {
    std::vector<std::string_view> all;
    std::string own;  // the last one wins
    for (const Assignment* patch : patches) {
      const std::string below = patch->path.substr(reference.path.size() + 1);
      if (below == key || below.starts_with(key + ".") || key.starts_with(below + ".")) own = patch->override_text;
      all.push_back(patch->override_text);
    }
    if (!own.empty()) return own;
    return all.empty() ? reference.override_text : fmt::format("{}", fmt::join(all, " "));
  }

  /// Errors inside another file keep their place; those of the plan file and of a name get the reference's.
  void add_reference_error(const ConfigError& error, const std::string& key, const Assignment& reference,
                           const std::vector<const Assignment*>& patches) {
    for (Diagnostic diagnostic : error.diagnostics()) {
      const bool own = diagnostic.file.empty() || diagnostic.file == file_;
      const std::string override_text = blamed(diagnostic.key, reference, patches);
      if (own && !override_text.empty() && diagnostic.line == 0) {
        diagnostic = {fmt::format("{}: {}", override_text, diagnostic.message), {}, 0, 0, diagnostic.key};
      } else if (own) {
        diagnostic.file = file_;
        if (diagnostic.line == 0) diagnostic.line = reference.value.line, diagnostic.column = reference.value.column;
      }
      if (own) diagnostic.key = diagnostic.key.empty() ? key : key + "." + diagnostic.key;
      errors_.push_back(std::move(diagnostic));
    }
  }

  std::string file_;
  const ConfigPaths& paths_;
  std::vector<Assignment> assignments_;
  std::vector<Diagnostic> errors_;
  Plan plan_;
};

/// The mapping under the dotted path, made if missing.
YamlValue& section(YamlValue& root, std::string_view path) {
  if (path.empty()) return root;
  const std::size_t dot = path.find('.');
  const std::string name(path.substr(0, dot));
  auto found =
      std::find_if(root.entries.begin(), root.entries.end(), [&](const YamlEntry& one) { return one.key == name; });
  YamlValue& child = found == root.entries.end() ? root.add(name, YamlValue::mapping()) : found->value;
  return dot == std::string_view::npos ? child : section(child, path.substr(dot + 1));
}

}  // namespace

Plan parse_plan(std::string_view yaml, const std::string& file_name, const std::vector<std::string>& overrides,
                const ConfigPaths& paths) {
  return PlanLoader(file_name, paths).load(yaml, overrides);
}

Plan load_plan(const std::filesystem::path& file, const std::vector<std::string>& overrides, const ConfigPaths& paths) {
  return parse_plan(read_text_file(file), file.string(), overrides, paths);
}

std::string write_plan(const Plan& plan) {
  YamlValue root = YamlValue::mapping();
  for (const PlanKey& key : plan_keys()) {
    const std::size_t dot = key.path.rfind('.');
    const std::string_view parent = dot == std::string::npos ? "" : std::string_view(key.path).substr(0, dot);
    section(root, parent).add(key.path.substr(dot + 1), key.get(plan));
  }
  return write_yaml(root);
}

}  // namespace reckon
