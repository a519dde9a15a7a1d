// The other direction of yaml_document: a tree as text that parse_yaml reads back to the same tree.
#include <fmt/format.h>

#include <array>

#include "plan/yaml_document.h"

namespace reckon {

namespace {

/// Plain text that YAML would read as something else: null, booleans, numbers stay plain scalars for readers, but a
/// string that looks like one is quoted by its writer (quoted_scalar), so only syntax matters here.
bool needs_quotes(std::string_view text, bool flow) {
  if (text.empty() || text.front() == ' ' || text.back() == ' ') return true;
  constexpr std::array<std::string_view, 5> kNull = {"~", "null", "Null", "NULL", "---"};
  for (std::string_view word : kNull) {
    if (text == word) return true;
  }
  if (std::string_view("-?:,[]{}#&*!|>'\"%@`").find(text.front()) != std::string_view::npos) {
    const bool sign_of_number = text.front() == '-' && text.size() > 1 && text[1] >= '0' && text[1] <= '9';
    if (!sign_of_number) return true;
  }
  if (text.find(": ") != std::string_view::npos || text.find(" #") != std::string_view::npos || text.back() == ':') {
    return true;
  }
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return true;
    if (flow && std::string_view(",[]{}").find(c) != std::string_view::npos) return true;
  }
  return false;
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string scalar_text(std::string_view text, bool quoted, bool flow) {
  return quoted || needs_quotes(text, flow) ? quote(text) : std::string(text);
}

std::string flow_text(const YamlValue& value) {
  std::string out;
  switch (value.kind) {
    case YamlValue::Kind::null: return "null";
    case YamlValue::Kind::scalar: return scalar_text(value.text, value.quoted, true);
    case YamlValue::Kind::sequence:
      for (const YamlValue& item : value.items) out += (out.empty() ? "" : ", ") + flow_text(item);
      return "[" + out + "]";
    case YamlValue::Kind::mapping: break;
  }
  for (const YamlEntry& entry : value.entries) {
    out += (out.empty() ? "" : ", ") + scalar_text(entry.key, false, true) + ": " + flow_text(entry.value);
  }
  return "{" + out + "}";
}

bool on_one_line(const YamlValue& value) {
  if (value.kind == YamlValue::Kind::null || value.kind == YamlValue::Kind::scalar) return true;
  return value.flow || (value.items.empty() && value.entries.empty());
}

std::string one_line(const YamlValue& value) {
  return value.kind == YamlValue::Kind::scalar ? scalar_text(value.text, value.quoted, false) : flow_text(value);
}

void write_block(const YamlValue& value, std::size_t indent, std::string& out) {
  const std::string margin(indent, ' ');
  if (on_one_line(value)) {
    out += margin + one_line(value) + "\n";
    return;
  }
  for (const YamlValue& item : value.items) {
    if (on_one_line(item)) {
      out += margin + "- " + one_line(item) + "\n";
    } else {
      const std::size_t start = out.size();
      write_block(item, indent + 2, out);
      out[start + indent] = '-';
    }
  }
  for (const YamlEntry& entry : value.entries) {
    out += margin + scalar_text(entry.key, false, false) + ":";
    if (on_one_line(entry.value)) {
      out += " " + one_line(entry.value) + "\n";
    } else {
      out += "\n";
      write_block(entry.value, indent + 2, out);
    }
  }
}

}  // namespace

std::string write_yaml(const YamlValue& document) {
  std::string out;
  write_block(document, 0, out);
  return out;
}

}  // namespace reckon
