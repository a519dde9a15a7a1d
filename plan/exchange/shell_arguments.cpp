#include "plan/exchange/shell_arguments.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

#include "plan/exchange/shell_arithmetic.h"
#include "plan/exchange/slurm_job.h"

namespace reckon {

namespace {

constexpr std::size_t kLongestValue = 4096;  // a variable that holds itself twice must not grow without bound

bool is_name_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) || letter == '_';
}

bool is_name(std::string_view text) {
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.end(), is_name_letter);
}

bool is_option(std::string_view word) {
  return word.size() > 2 && word.starts_with("--") && std::isalpha(static_cast<unsigned char>(word[2]));
}

/// A quoted text that is itself a list of options.
bool holds_options(std::string_view text) {
  for (std::size_t at = text.find("--"); at != std::string_view::npos; at = text.find("--", at + 1)) {
    const bool starts = at == 0 || std::isspace(static_cast<unsigned char>(text[at - 1]));
    if (starts && is_option(text.substr(at, 3))) return true;
  }
  return false;
}

class Script {
 public:
  explicit Script(std::string_view text) { read(text, 1, false); }

  ShellArguments take() {
    if (branches_)
      result_.warnings.push_back("the script has an `if` or `case`: the options of all branches were read");
    return std::move(result_);
  }

 private:
  /// `inside`: the text is a list of options within quotes, where a line end means nothing.
  void read(std::string_view text, int line, bool inside) {
    int depth = 0;  // of array brackets
    for (std::size_t at = 0; at < text.size();) {
      const char letter = text[at];
      if (letter == '\\' && at + 1 < text.size()) {
        const std::size_t skipped = text.substr(at + 1).starts_with("\r\n") ? 3 : 2;
        if (skipped == 3 || text[at + 1] == '\n') {
          end_word();
          ++line;
        } else {
          append(text[at + 1], line);
        }
        at += skipped;
      } else if (letter == '\n') {
        end_word();
        if (depth == 0 && !inside) end_statement();
        ++line, ++at;
      } else if (std::isspace(static_cast<unsigned char>(letter))) {
        end_word();
        ++at;
      } else if (letter == '#' && word_.empty()) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        read_comment(text.substr(at, end - at), line);
        at = end;
      } else if (letter == '\'' || letter == '"') {
        at = read_quoted(text, at, line);
      } else if (letter == '$') {
        at = read_dollar(text, at, line);
      } else if (letter == '(' && word_.ends_with('=')) {
        start_array();
        ++depth, ++at;
      } else if (letter == '(' || letter == ')') {
        end_word();
        if (letter == ')' && depth > 0 && --depth == 0) end_statement();
        ++at;
      } else if ((letter == ';' || letter == '&' || letter == '|') && !inside) {
        end_word();
        if (depth == 0) end_statement();
        ++at;
      } else if ((letter == '>' || letter == '<') && !inside) {
        start_redirection();
        ++at;
      } else {
        append(letter, line);
        ++at;
      }
    }
    end_word();
    if (!inside) end_statement();
  }

  /// What follows is a file; "2" in front of it a number of a stream.
  void start_redirection() {
    const bool stream = word_.size() == 1 && std::isdigit(static_cast<unsigned char>(word_[0]));
    if (stream) word_.clear(), in_word_ = false;
    end_word();
    open_ = false;
  }

  void append(char letter, int line) {
    if (word_.empty()) word_line_ = line;
    if (word_.size() < kLongestValue) word_ += letter;
    in_word_ = true;
  }
  void append(std::string_view text, int line) {
    if (word_.empty()) word_line_ = line;
    word_ += text.substr(0, kLongestValue - std::min(kLongestValue, word_.size()));
    in_word_ = true;
  }

  /// How many nodes a job has often stands only in an "#SBATCH" line.
  void read_comment(std::string_view comment, int line) {
    const auto request = job_.read(comment);
    if (request) add("#SBATCH " + request->option, YamlValue::scalar(request->value), line);
  }

  std::size_t read_quoted(std::string_view text, std::size_t at, int& line) {
    const char quote = text[at];
    std::size_t end = at + 1;
    while (end < text.size() && text[end] != quote) end += quote == '"' && text[end] == '\\' ? 2 : 1;
    end = std::min(end, text.size());
    const std::string_view inner = text.substr(at + 1, end - at - 1);
    const int start_line = line;
    line += static_cast<int>(std::count(inner.begin(), inner.end(), '\n'));
    if (holds_options(inner)) {
      if (word_.ends_with('=')) start_array();
      end_word();
      read(inner, start_line, true);
      return end + 1;
    }
    append("", start_line);  // '' is a word too
    if (quote == '\'') {
      append(inner, start_line);
    } else {
      for (std::size_t i = 0; i < inner.size();) {
        if (inner[i] == '$') i = read_dollar(inner, i, start_line);
        else append(inner[i++], start_line);
      }
    }
    return end + 1;
  }

  /// $NAME, ${NAME}, ${NAME:-otherwise}, $((...)), $(...).
  std::size_t read_dollar(std::string_view text, std::size_t at, int line) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("$(")) {
      const std::size_t length = balanced(rest, 1, '(', ')');
      const std::string_view inner = rest.substr(0, length);
      const bool computes = inner.starts_with("$((") && inner.ends_with("))");
      std::optional<std::int64_t> value;
      if (computes)
        value = shell_arithmetic(inner.substr(3, inner.size() - 5),
                                 [this](std::string_view name) { return variable(name); });
      append(value ? std::to_string(*value) : std::string(inner), line);
      return at + length;
    }
    if (rest.starts_with("${")) {
      const std::size_t length = balanced(rest, 1, '{', '}');
      std::string_view inner = rest.substr(2, length - std::min<std::size_t>(length, 3));
      append(expanded(inner, rest.substr(0, length)), line);
      return at + length;
    }
    std::size_t length = 1;
    while (length < rest.size() && is_name_letter(rest[length])) ++length;
    if (length == 1 && rest.size() > 1 && (rest[1] == '@' || rest[1] == '*')) {  // the caller's further options
      in_word_ = true;
      return at + 2;
    }
    const auto value = variable(rest.substr(1, length - 1));
    append(value ? *value : std::string(rest.substr(0, length)), line);
    return at + length;
  }

  /// `inner` of ${...}; `raw` is what stays when the variable is not set.
  std::string expanded(std::string_view inner, std::string_view raw) {
    std::size_t length = 0;
    while (length < inner.size() && is_name_letter(inner[length])) ++length;
    const std::string_view name = inner.substr(0, length), operation = inner.substr(length);
    if (const auto value = variable(name)) return *value;
    for (const char* otherwise : {":-", ":=", "-", "="}) {
      if (!operation.starts_with(otherwise)) continue;
      std::string value(operation.substr(std::string_view(otherwise).size()));
      std::erase_if(value, [](char letter) { return letter == '"' || letter == '\''; });
      if (std::string_view(otherwise).ends_with('=')) variables_[std::string(name)] = value;
      return value;
    }
    return std::string(raw);
  }

  static std::size_t balanced(std::string_view text, std::size_t from, char open, char close) {
    int depth = 0;
    for (std::size_t at = from; at < text.size(); ++at) {
      if (text[at] == open) ++depth;
      if (text[at] == close && --depth == 0) return at + 1;
    }
    return text.size();
  }

  std::optional<std::string> variable(std::string_view name) const {
    const auto found = variables_.find(name);
    if (found == variables_.end()) return job_.variable(name);
    return found->second;
  }

  /// NAME=( or NAME+=( or NAME="--options": its options are read where they stand, so that using it adds nothing.
  void start_array() {
    word_.pop_back();
    if (word_.ends_with('+')) word_.pop_back();
    if (is_name(word_)) variables_[word_] = "";
    word_.clear();
    in_word_ = false;
  }

  void end_word() {
    if (!in_word_) return;
    std::string word = std::move(word_);
    word_.clear();
    in_word_ = false;
    if (word.empty()) return;
    if (word == "if" || word == "case" || word == "elif") branches_ = true;
    if (!open_ && assign(word)) return;
    if (is_option(word)) {
      const std::size_t equals = word.find('=');
      add(word.substr(0, equals), {}, word_line_);
      open_ = true;
      if (equals == std::string::npos) return;
      word = word.substr(equals + 1);
    }
    if (!open_) return;
    if (word.ends_with(".py")) {  // the program that a launcher starts
      open_ = false;
      return;
    }
    add_value(word);
  }

  bool assign(const std::string& word) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || !is_name(std::string_view(word).substr(0, equals))) return false;
    variables_[word.substr(0, equals)] = word.substr(equals + 1);
    return true;
  }

  void add(std::string key, YamlValue value, int line) {
    value.line = line;
    result_.options.push_back({std::move(key), std::move(value), line, 1});
  }

  void add_value(const std::string& word) {
    YamlValue& value = result_.options.back().value;
    if (value.kind == YamlValue::Kind::null) {
      const int line = value.line;
      value = YamlValue::scalar(word);
      value.line = line;
    } else if (word.starts_with('$')) {
      return;  // further options of the caller
    } else if (value.kind == YamlValue::Kind::scalar) {
      std::vector<YamlValue> items = {std::move(value), YamlValue::scalar(word)};
      value = YamlValue::sequence(std::move(items));
    } else {
      value.items.push_back(YamlValue::scalar(word));
    }
  }

  void end_statement() {
    open_ = false;
    for (SourceField& option : result_.options)
      if (option.value.kind == YamlValue::Kind::null) option.value = YamlValue::scalar("true");
  }

  ShellArguments result_;
  SlurmJob job_;
  std::map<std::string, std::string, std::less<>> variables_;
  std::string word_;
  int word_line_ = 1;
  bool in_word_ = false, open_ = false, branches_ = false;  // open: words are values of the last option
};

}  // namespace

ShellArguments shell_arguments(std::string_view text) {
  return Script(text).take();
}

}  // namespace reckon
