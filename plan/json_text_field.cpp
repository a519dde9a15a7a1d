#include "plan/json_text_field.h"

#include <cctype>

namespace reckon {

namespace {

constexpr int kDeepest = 100;

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::optional<std::string> field(std::string_view wanted) {
    std::optional<std::string> found;
    skip_space();
    expect('{');
    members([&](const std::string& key) {
      if (key != wanted) return skip_value(0);
      if (peek() != '"') fail("the field '" + std::string(wanted) + "' is not a string");
      found = string();
    });
    skip_space();
    if (at_ < text_.size()) fail("text after the end of the object");
    return found;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { throw JsonProblem(message, at_); }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char next() {
    if (at_ == text_.size()) fail("the line ends inside a value");
    return text_[at_++];
  }
  void expect(char wanted) {
    if (peek() != wanted) fail(std::string("'") + wanted + "' is expected here");
    ++at_;
  }
  void skip_space() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\r' || peek() == '\n') ++at_;
  }

  /// Members of an object whose '{' was read; `value` is called at the value of every key.
  template <class OnValue>
  void members(OnValue value) {
    skip_space();
    if (peek() == '}') return void(++at_);
    while (true) {
      skip_space();
      const std::string key = string();
      skip_space();
      expect(':');
      skip_space();
      value(key);
      skip_space();
      if (peek() == '}') return void(++at_);
      expect(',');
    }
  }

  void skip_value(int depth) {
    if (depth > kDeepest) fail("values nested more than 100 levels deep");
    if (peek() == '"') return void(string());
    if (peek() == '{') return ++at_, members([&](const std::string&) { skip_value(depth + 1); });
    if (peek() == '[') return ++at_, skip_items(depth);
    const std::size_t first = at_;
    while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '-' || peek() == '+' || peek() == '.') ++at_;
    if (at_ == first) fail("a value is expected here");
  }

  void skip_items(int depth) {
    skip_space();
    if (peek() == ']') return void(++at_);
    while (true) {
      skip_space();
      skip_value(depth + 1);
      skip_space();
      if (peek() == ']') return void(++at_);
      expect(',');
    }
  }

  std::string string() {
    expect('"');
    std::string text;
    while (true) {
      const char c = next();
      if (c == '"') return text;
      if (static_cast<unsigned char>(c) < 0x20) fail("a control character inside a string must be escaped");
      if (c == '\\') escape(text);
      else text += c;
    }
  }

  void escape(std::string& text) {
    const char c = next();
    switch (c) {
      case 'n': text += '\n'; break;
      case 't': text += '\t'; break;
      case 'r': text += '\r'; break;
      case 'b': text += '\b'; break;
      case 'f': text += '\f'; break;
      case '"':
      case '\\':
      case '/': text += c; break;
      case 'u': append_utf8(text, code_point()); break;
      default: fail("unknown escape");
    }
  }

  unsigned hexadecimal() {
    unsigned value = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = next();
      if (!std::isxdigit(static_cast<unsigned char>(c))) fail("four hexadecimal digits are expected after \\u");
      value = value * 16 + static_cast<unsigned>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return value;
  }

  /// A \u escape, or two that form a surrogate pair.
  unsigned code_point() {
    const unsigned high = hexadecimal();
    if (high < 0xD800 || high > 0xDFFF) return high;
    if (high > 0xDBFF || next() != '\\' || next() != 'u') fail("half of a surrogate pair");
    const unsigned low = hexadecimal();
    if (low < 0xDC00 || low > 0xDFFF) fail("half of a surrogate pair");
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
  }

  static void append_utf8(std::string& text, unsigned code) {
    const auto byte = [&](unsigned value) { text += static_cast<char>(value); };
    if (code < 0x80) return byte(code);
    if (code < 0x800) return byte(0xC0 | code >> 6), byte(0x80 | (code & 0x3F));
    if (code < 0x10000) return byte(0xE0 | code >> 12), byte(0x80 | (code >> 6 & 0x3F)), byte(0x80 | (code & 0x3F));
    byte(0xF0 | code >> 18), byte(0x80 | (code >> 12 & 0x3F)), byte(0x80 | (code >> 6 & 0x3F)),
        byte(0x80 | (code & 0x3F));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::string> json_text_field(std::string_view line, std::string_view key) {
  return Scanner(line).field(key);
}

}  // namespace reckon
