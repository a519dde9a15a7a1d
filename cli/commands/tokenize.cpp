#include "cli/commands/tokenize.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "plan/document_source.h"
#include "plan/read_only_file.h"
#include "plan/token_file.h"
#include "report/token_file_json.h"
#include "runtime/train/input/text_tokenizer.h"

namespace reckon {

namespace {

namespace fs = std::filesystem;

/// How far it is, on a terminal, a few times a second.
class Progress {
 public:
  explicit Progress(std::int64_t documents) : documents_(documents), shows_(::isatty(STDERR_FILENO) != 0) {}
  ~Progress() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }
  void show(const TokenFileSummary& done) {
    const auto now = std::chrono::steady_clock::now();
    if (!shows_ || now - last_ < std::chrono::milliseconds(200)) return;
    last_ = now;
    shown_ = true;
    std::fputs(fmt::format("\r{} of {} documents, {:.1f} million tokens", done.documents, documents_,
                           static_cast<double>(done.tokens) / 1e6)
                   .c_str(),
               stderr);
  }

 private:
  std::int64_t documents_;
  bool shows_, shown_ = false;
  std::chrono::steady_clock::time_point last_{};
};

[[noreturn]] void refuse(std::string message, const std::string& file) {
  throw ConfigError({{std::move(message), file, 0, 0, {}}});
}

bool holds_tokens(const fs::path& input) {
  if (folder_exists(input)) return false;
  const fs::path ending = input.extension();
  return ending == ".idx" || ending == ".bin" || is_token_file(input);
}

void add(TokenFileWriter& writer, const std::vector<std::int32_t>& tokens, TokenFileSummary& done, Progress& progress) {
  writer.add(tokens);
  ++done.documents;
  done.tokens += static_cast<std::int64_t>(tokens.size());
  progress.show(done);
}

TokenFileSummary copy_tokens(const TokenizeOptions& options) {
  if (options.tokenizer != "bytes")
    refuse("holds tokens already; a tokenizer is for text: leave --tokenizer out", options.input);
  const auto source = open_documents(options.input);
  TokenFileWriter writer(options.out, source->vocabulary());
  TokenFileSummary done{options.out, "none", source->vocabulary()};
  Progress progress(source->documents());
  for (std::int64_t document = 0; document < source->documents(); ++document)
    add(writer, source->read_all(document), done, progress);
  writer.finish();
  return done;
}

TokenFileSummary cut_text(const TokenizeOptions& options) {
  const auto tokenizer = open_tokenizer(options.tokenizer);
  const std::vector<TextDocument> documents = list_text_documents(options.input);
  TokenFileWriter writer(options.out, tokenizer->vocabulary());
  TokenFileSummary done{options.out, options.tokenizer, tokenizer->vocabulary()};
  Progress progress(static_cast<std::int64_t>(documents.size()));
  for (const TextDocument& document : documents)
    add(writer, tokenizer->tokens(read_text(document), document), done, progress);
  writer.finish();
  return done;
}

}  // namespace

ExitCode tokenize_command(const TokenizeOptions& options, const Output& output) {
  std::error_code error;
  if (!fs::exists(options.input, error)) refuse("there is no such file or folder", options.input);
  if (fs::equivalent(options.input, options.out, error))
    refuse("is input and output at once; name another file with --out", options.out);
  const TokenFileSummary summary = holds_tokens(options.input) ? copy_tokens(options) : cut_text(options);
  verify_token_file(options.out);  // what a disk wrote wrongly shows now, not after a week of training
  if (output.json()) output.result(token_file_json(summary));
  else
    output.result(fmt::format("{}: {} documents, {} tokens below {}; train on it with documents.source={}\n",
                              summary.file, summary.documents, summary.tokens, summary.vocabulary, summary.file));
  return ExitCode::success;
}

}  // namespace reckon
