// Reading a Hugging Face config.json field by field: several spellings of one field, null as absent, defaults, and the
// names of the fields that nobody asked for.
#pragma once

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "plan/errors.h"
#include "plan/yaml_reader.h"

namespace reckon {

class HuggingFaceFields {
 public:
  /// Document, file and errors must outlive it; wrong values are added to `errors`.
  HuggingFaceFields(const YamlValue& document, const std::string& file, std::vector<Diagnostic>& errors)
      : document_(&document), reader_(document, file, errors) {}

  /// The value of the first of `names` that is there and not null, else `otherwise`.
  template <class T>
  T get(std::initializer_list<std::string_view> names, T otherwise) {
    for (const std::string_view name : names) used_.emplace(name);
    for (const std::string_view name : names)
      if (find(name) != nullptr) return read(name, std::move(otherwise));
    return otherwise;
  }
  template <class T>
  T get(std::string_view name, T otherwise) {
    return get({name}, std::move(otherwise));
  }

  /// The value of `nested` inside the mapping `name`, else `otherwise`.
  template <class T>
  T get_nested(std::string_view name, std::string_view nested, T otherwise) {
    const YamlValue* value = find_nested(name, nested);
    try {
      if (value != nullptr) from_yaml(*value, otherwise);
    } catch (const ConfigError& problem) {
      error(name, std::string(nested) + ": " + problem.diagnostics().front().message);
    }
    return otherwise;
  }

  /// A whole number that must be there. Neither need nor get let one beyond 2^31 through.
  std::int64_t need(std::initializer_list<std::string_view> names);
  std::int64_t need(std::string_view name) { return need({name}); }

  /// The raw value, null pointer when absent or null; the field counts as used.
  const YamlValue* find(std::string_view name);

  void error(std::string_view name, std::string message) { reader_.error(name, std::move(message)); }
  /// Fields that were not asked for, in file order.
  std::vector<std::string> unused() const;

 private:
  const YamlValue* find_nested(std::string_view name, std::string_view nested);
  std::int64_t within_range(std::string_view name, std::int64_t value);

  template <class T>
  T read(std::string_view name, T otherwise) {
    reader_.read(name, otherwise);
    if constexpr (std::is_same_v<T, std::int64_t>) return within_range(name, otherwise);
    return otherwise;
  }

  const YamlValue* document_;
  YamlReader reader_;
  std::set<std::string, std::less<>> used_;
};

}  // namespace reckon
