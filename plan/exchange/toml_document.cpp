#include "plan/exchange/toml_document.h"

#include <toml++/toml.h>

#include <sstream>

#include "plan/errors.h"

namespace reckon {

namespace {

YamlValue placed(YamlValue value, const toml::node& node) {
  value.line = static_cast<int>(node.source().begin.line);
  value.column = static_cast<int>(node.source().begin.column);
  return value;
}

/// The library bounds nesting by 256 levels itself.
YamlValue tree(const toml::node& node) {
  if (const toml::table* table = node.as_table()) {
    YamlValue mapping = YamlValue::mapping();
    for (const auto& [key, value] : *table) {
      YamlEntry entry{std::string(key.str()), static_cast<int>(key.source().begin.line),
                      static_cast<int>(key.source().begin.column), tree(value)};
      mapping.entries.push_back(std::move(entry));
    }
    return placed(std::move(mapping), node);
  }
  if (const toml::array* array = node.as_array()) {
    std::vector<YamlValue> items;
    for (const toml::node& item : *array) items.push_back(tree(item));
    return placed(YamlValue::sequence(std::move(items)), node);
  }
  if (const auto* text = node.as_string()) return placed(YamlValue::quoted_scalar(text->get()), node);
  std::ostringstream written;
  node.visit([&](const auto& value) {
    if constexpr (toml::is_value<decltype(value)>) written << value;
  });
  return placed(YamlValue::scalar(written.str()), node);
}

}  // namespace

YamlValue parse_toml(std::string_view text, const std::string& file) {
  try {
    return tree(toml::parse(text));
  } catch (const toml::parse_error& error) {
    throw ConfigError({{"not valid TOML: " + std::string(error.description()),
                        file,
                        static_cast<int>(error.source().begin.line),
                        static_cast<int>(error.source().begin.column),
                        {}}});
  }
}

}  // namespace reckon
