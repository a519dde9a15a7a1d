#include "plan/yaml_document.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "plan/errors.h"

namespace reckon {

namespace {

constexpr int kDeepest = 64;
constexpr std::size_t kMostNodes = 1000000;
constexpr std::uintmax_t kLargestFile = 64u << 20;

/// Thrown inside this file only; parse_yaml adds the file name.
struct Problem {
  std::string message;
  int line, column;
};

std::size_t count_nodes(const YamlValue& value) {
  std::size_t count = 1;
  for (const YamlValue& item : value.items) count += count_nodes(item);
  for (const YamlEntry& entry : value.entries) count += count_nodes(entry.value);
  return count;
}

int depth(const YamlValue& value) {
  int deepest = 0;
  for (const YamlValue& item : value.items) deepest = std::max(deepest, depth(item));
  for (const YamlEntry& entry : value.entries) deepest = std::max(deepest, depth(entry.value));
  return deepest + 1;
}

/// Builds the tree from the parser's events.
class TreeBuilder : public YAML::EventHandler {
 public:
  YamlValue root;

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    YamlValue value = node(mark, YamlValue::Kind::null);
    place(std::move(value), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) fail(mark, "this alias stands inside the value it refers to");
    YamlValue copy = found->second;
    nodes_ += count_nodes(copy);
    check_size(mark);
    if (static_cast<int>(open_.size()) + depth(copy) > kDeepest) too_deep(mark);
    place(std::move(copy), YAML::NullAnchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    check_tag(mark, tag);
    check_printable(mark, text);
    if (expects_key()) {
      open_.back().key = YamlEntry{text, mark.line + 1, mark.column + 1, {}};
      open_.back().has_key = true;
      if (anchor != YAML::NullAnchor) anchors_[anchor] = YamlValue::scalar(text);
      return;
    }
    YamlValue value = node(mark, YamlValue::Kind::scalar);
    value.text = text;
    value.quoted = tag == "!";
    place(std::move(value), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    start(mark, tag, anchor, YamlValue::Kind::sequence);
  }
  void OnSequenceEnd() override { end(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    start(mark, tag, anchor, YamlValue::Kind::mapping);
  }
  void OnMapEnd() override { end(); }

 private:
  /// A sequence or mapping whose end has not come yet.
  struct Open {
    YamlValue value;
    YAML::anchor_t anchor;
    YamlEntry key;
    bool has_key = false;
  };

  [[noreturn]] static void fail(const YAML::Mark& mark, std::string message) {
    throw Problem{std::move(message), mark.line + 1, mark.column + 1};
  }
  [[noreturn]] static void too_deep(const YAML::Mark& mark) {
    fail(mark, fmt::format("values are nested deeper than {} levels", kDeepest));
  }
  void check_size(const YAML::Mark& mark) const {
    if (nodes_ > kMostNodes) fail(mark, fmt::format("the document holds more than {} values", kMostNodes));
  }
  static void check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag != "?" && tag != "!") fail(mark, fmt::format("the tag '{}' is not understood; remove it", tag));
  }

  static void check_printable(const YAML::Mark& mark, const std::string& text) {
    if (const std::string problem = unprintable(text); !problem.empty()) fail(mark, problem);
  }

  bool expects_key() const {
    return !open_.empty() && open_.back().value.kind == YamlValue::Kind::mapping && !open_.back().has_key;
  }

  YamlValue node(const YAML::Mark& mark, YamlValue::Kind kind) {
    ++nodes_;
    check_size(mark);
    YamlValue value;
    value.kind = kind;
    value.line = mark.line + 1;
    value.column = mark.column + 1;
    return value;
  }

  void start(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YamlValue::Kind kind) {
    check_tag(mark, tag);
    if (expects_key()) fail(mark, "a list or mapping stands where a key is expected; is a closing bracket missing?");
    if (static_cast<int>(open_.size()) >= kDeepest) too_deep(mark);
    open_.push_back({node(mark, kind), anchor, {}, false});
  }

  void end() {
    Open finished = std::move(open_.back());
    open_.pop_back();
    place(std::move(finished.value), finished.anchor);
  }

  void place(YamlValue value, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) anchors_[anchor] = value;
    if (open_.empty()) {
      root = std::move(value);
      return;
    }
    Open& parent = open_.back();
    if (parent.value.kind == YamlValue::Kind::sequence) {
      parent.value.items.push_back(std::move(value));
    } else if (parent.has_key) {
      parent.key.value = std::move(value);
      parent.value.entries.push_back(std::move(parent.key));
      parent.has_key = false;
    } else {
      throw Problem{"a key must be plain text", value.line, value.column};
    }
  }

  std::vector<Open> open_;
  std::map<YAML::anchor_t, YamlValue> anchors_;
  std::size_t nodes_ = 0;
};

/// Length of the valid UTF-8 sequence at the start of `text`, 0 if there is none (RFC 3629: no overlong forms, no
/// surrogates, at most U+10FFFF).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return lead == 0 ? 0 : 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F)) return 0;
  if ((lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) return 0;
  return length;
}

void check_utf8(std::string_view text) {
  int line = 1, column = 1;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) {
      throw Problem{fmt::format("byte 0x{:02X} is not valid UTF-8 text", static_cast<unsigned char>(text[at])), line,
                    column};
    }
    if (text[at] == '\n') {
      ++line, column = 1;
    } else {
      ++column;
    }
    at += length;
  }
}

YamlValue parse(std::string_view text) {
  check_utf8(text);
  std::istringstream stream{std::string(text)};
  YAML::Parser parser(stream);
  TreeBuilder builder;
  if (!parser.HandleNextDocument(builder)) return {};
  YamlValue root = std::move(builder.root);
  TreeBuilder second;
  if (parser.HandleNextDocument(second)) {
    throw Problem{"a second document starts here; a file holds one", second.root.line, second.root.column};
  }
  return root;
}

}  // namespace

YamlValue YamlValue::scalar(std::string text) {
  YamlValue value;
  value.kind = Kind::scalar;
  value.text = std::move(text);
  return value;
}

YamlValue YamlValue::quoted_scalar(std::string text) {
  YamlValue value = scalar(std::move(text));
  value.quoted = true;
  return value;
}

YamlValue YamlValue::sequence(std::vector<YamlValue> items) {
  YamlValue value;
  value.kind = Kind::sequence;
  value.flow = true;
  value.items = std::move(items);
  return value;
}

YamlValue YamlValue::mapping() {
  YamlValue value;
  value.kind = Kind::mapping;
  return value;
}

const YamlValue* YamlValue::find(std::string_view key) const {
  for (const YamlEntry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

YamlValue& YamlValue::add(std::string key, YamlValue value) {
  entries.push_back({std::move(key), 0, 0, std::move(value)});
  return entries.back().value;
}

std::string unprintable(std::string_view text) {
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    const bool is_layout = letter == '\n' || letter == '\t' || letter == '\r';
    if ((code < 0x20 && !is_layout) || code == 0x7F)
      return fmt::format("the text holds the control character 0x{:02X}; remove it", code);
  }
  return {};
}

std::string describe(const YamlValue& value) {
  switch (value.kind) {
    case YamlValue::Kind::null: return "nothing";
    case YamlValue::Kind::sequence: return "a list";
    case YamlValue::Kind::mapping: return "a mapping";
    case YamlValue::Kind::scalar: break;
  }
  constexpr std::size_t kLongest = 60;
  if (value.text.size() <= kLongest) return fmt::format("'{}'", value.text);
  std::size_t end = kLongest;  // never cut inside a character
  while (end > 0 && (static_cast<unsigned char>(value.text[end]) & 0xC0) == 0x80) --end;
  return fmt::format("'{}...'", value.text.substr(0, end));
}

YamlValue parse_yaml(std::string_view text, const std::string& file_name) {
  try {
    return parse(text);
  } catch (const Problem& problem) {
    throw ConfigError({{problem.message, file_name, problem.line, problem.column, {}}});
  } catch (const YAML::Exception& error) {
    const YAML::Mark mark = error.mark.is_null() ? YAML::Mark{} : error.mark;
    throw ConfigError({{"not valid YAML: " + error.msg, file_name, mark.line + 1, mark.column + 1, {}}});
  }
}

std::string read_text_file(const std::filesystem::path& file) {
  const auto fail = [&](std::string_view problem) {
    throw ConfigError({{std::string(problem), file.string(), 0, 0, {}}});
  };
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(file, error);
  if (status.type() == std::filesystem::file_type::not_found) fail("there is no such file");
  if (status.type() == std::filesystem::file_type::directory) fail("this is a directory, not a file");
  if (error) fail("the file cannot be read: " + error.message());
  if (status.type() == std::filesystem::file_type::regular && std::filesystem::file_size(file, error) > kLargestFile) {
    fail(fmt::format("the file is larger than {} MiB, too large for a configuration", kLargestFile >> 20));
  }
  std::ifstream stream(file, std::ios::binary);
  if (!stream) fail("the file cannot be opened: no permission to read it");
  std::string text;
  char block[65536];
  while (stream.read(block, sizeof block) || stream.gcount() > 0) {
    text.append(block, static_cast<std::size_t>(stream.gcount()));
    if (text.size() > kLargestFile) fail("the file does not end; it is too large for a configuration");
  }
  if (stream.bad()) fail("the file cannot be read to its end");
  return text;
}

}  // namespace reckon
