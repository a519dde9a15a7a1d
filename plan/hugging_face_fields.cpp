#include "plan/hugging_face_fields.h"

#include <fmt/format.h>

namespace reckon {

std::int64_t HuggingFaceFields::need(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) used_.emplace(name);
  for (const std::string_view name : names)
    if (find(name) != nullptr) return read(name, std::int64_t{0});
  error(*names.begin(), fmt::format("the field '{}' is missing", *names.begin()));
  return 0;
}

std::int64_t HuggingFaceFields::within_range(std::string_view name, std::int64_t value) {
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1;
  if (value >= -kMost && value <= kMost) return value;
  error(name, fmt::format("{} is {}; no model has more than {}", name, value, kMost));
  return 0;
}

const YamlValue* HuggingFaceFields::find(std::string_view name) {
  used_.emplace(name);
  const YamlValue* value = document_->find(name);
  return value == nullptr || value->kind == YamlValue::Kind::null ? nullptr : value;
}

const YamlValue* HuggingFaceFields::find_nested(std::string_view name, std::string_view nested) {
  const YamlValue* outer = find(name);
  const YamlValue* value = outer == nullptr ? nullptr : outer->find(nested);
  return value == nullptr || value->kind == YamlValue::Kind::null ? nullptr : value;
}

std::vector<std::string> HuggingFaceFields::unused() const {
  std::vector<std::string> names;
  for (const YamlEntry& entry : document_->entries)
    if (!used_.contains(entry.key)) names.push_back(entry.key);
  return names;
}

}  // namespace reckon
