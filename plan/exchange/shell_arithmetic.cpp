#include "plan/exchange/shell_arithmetic.h"

#include <cctype>
#include <cmath>

namespace reckon {

namespace {

constexpr int kDeepest = 32;
constexpr double kMost = 9007199254740992.0;  // 2^53: doubles count exactly up to there

using Lookup = std::function<std::optional<std::string>(std::string_view)>;

/// Recursive descent: sum = product {+- product}, product = factor {*/% factor}.
class Expression {
 public:
  Expression(std::string_view text, const Lookup& variable) : text_(text), variable_(variable) {}

  std::optional<double> whole() {
    const auto value = sum(0);
    skip();
    return at_ == text_.size() ? value : std::nullopt;
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  char next() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  std::optional<double> sum(int depth) {
    auto left = product(depth);
    for (char sign = next(); left && (sign == '+' || sign == '-'); sign = next()) {
      ++at_;
      const auto right = product(depth);
      left = right ? checked(sign == '+' ? *left + *right : *left - *right) : std::nullopt;
    }
    return left;
  }

  std::optional<double> product(int depth) {
    auto left = factor(depth);
    for (char sign = next(); left && (sign == '*' || sign == '/' || sign == '%'); sign = next()) {
      ++at_;
      const auto right = factor(depth);
      if (!right || (sign != '*' && *right == 0)) return std::nullopt;
      left = checked(sign == '*'   ? *left * *right
                     : sign == '/' ? std::trunc(*left / *right)
                                   : std::fmod(*left, *right));
    }
    return left;
  }

  std::optional<double> factor(int depth) {
    if (depth > kDeepest) return std::nullopt;
    if (next() == '(') {
      ++at_;
      const auto inner = sum(depth + 1);
      if (next() != ')') return std::nullopt;
      ++at_;
      return inner;
    }
    const std::size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' ||
                                  text_[at_] == '$' || text_[at_] == '{' || text_[at_] == '}'))
      ++at_;
    return value_of(text_.substr(start, at_ - start));
  }

  std::optional<double> value_of(std::string_view word) const {
    while (!word.empty() && (word.front() == '$' || word.front() == '{')) word.remove_prefix(1);
    while (!word.empty() && word.back() == '}') word.remove_suffix(1);
    if (word.empty()) return std::nullopt;
    if (std::isdigit(static_cast<unsigned char>(word.front()))) return digits(word);
    const auto text = variable_(word);
    return text ? digits(*text) : std::nullopt;
  }

  static std::optional<double> digits(std::string_view word) {
    double value = 0;
    if (word.empty()) return std::nullopt;
    for (const char digit : word) {
      if (!std::isdigit(static_cast<unsigned char>(digit))) return std::nullopt;
      value = 10 * value + (digit - '0');
    }
    return checked(value);
  }

  static std::optional<double> checked(double value) {
    return std::abs(value) <= kMost ? std::optional(value) : std::nullopt;
  }

  std::string_view text_;
  const Lookup& variable_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::int64_t> shell_arithmetic(std::string_view text, const Lookup& variable) {
  const auto value = Expression(text, variable).whole();
  return value ? std::optional(static_cast<std::int64_t>(*value)) : std::nullopt;
}

}  // namespace reckon
