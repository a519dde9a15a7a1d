// One string field of a JSON object on one line, without building a tree: what a JSONL text corpus needs.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace reckon {

/// What is wrong with a JSON text, and where (byte from its start).
struct JsonProblem : std::runtime_error {
  JsonProblem(const std::string& message, std::size_t byte_at) : std::runtime_error(message), byte(byte_at) {}
  std::size_t byte;
};

/// The value of `key` in the outermost object, escapes resolved; nothing if the key is absent. Throws JsonProblem when
/// the line is not one JSON object or the value is not a string.
std::optional<std::string> json_text_field(std::string_view line, std::string_view key);

}  // namespace reckon
