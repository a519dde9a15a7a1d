#include "runtime/train/input/sentence_pieces.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <algorithm>

#include "plan/errors.h"
#include "plan/text_documents.h"

namespace reckon {
namespace {

[[noreturn]] void refuse(std::string message, const std::filesystem::path& file, const char* key) {
  throw ConfigError({{std::move(message), file.string(), 0, 0, key}});
}

class PieceTokenizer : public TextTokenizer {
 public:
  explicit PieceTokenizer(const std::filesystem::path& model) {
    if (const auto status = processor_.Load(model.string()); !status.ok())
      refuse(fmt::format("cannot be read as a SentencePiece model: {}", status.ToString()), model, "train.tokenizer");
  }

  std::int64_t vocabulary() const override { return processor_.GetPieceSize(); }
  std::vector<std::int32_t> tokens(const std::string& text, const TextDocument& document) const override {
    std::vector<int> ids;
    if (const auto status = processor_.Encode(text, &ids); !status.ok())
      refuse(fmt::format("cannot be cut into pieces: {}", status.ToString()), document.file, "train.data");
    if (processor_.eos_id() >= 0) ids.push_back(processor_.eos_id());
    if (ids.empty()) refuse("this document gives no piece", document.file, "train.data");
    return {ids.begin(), ids.end()};
  }

 private:
  sentencepiece::SentencePieceProcessor processor_;
};

class PieceDocuments : public DocumentSource {
 public:
  PieceDocuments(const std::filesystem::path& data, const std::filesystem::path& model) {
    const PieceTokenizer tokenizer(model);
    vocabulary_ = tokenizer.vocabulary();
    for (const TextDocument& document : list_text_documents(data))
      pieces_.push_back(tokenizer.tokens(read_text(document), document));
  }

  std::int64_t vocabulary() const override { return vocabulary_; }
  std::int64_t documents() const override { return static_cast<std::int64_t>(pieces_.size()); }
  std::int64_t length(std::int64_t document) const override { return static_cast<std::int64_t>(of(document).size()); }
  void read(std::int64_t document, std::int64_t first, std::span<std::int32_t> into) const override {
    std::copy_n(of(document).begin() + first, into.size(), into.begin());
  }

 private:
  const std::vector<std::int32_t>& of(std::int64_t document) const {
    return pieces_.at(static_cast<std::size_t>(document));
  }

  std::int64_t vocabulary_ = 0;
  std::vector<std::vector<std::int32_t>> pieces_;
};

}  // namespace

std::unique_ptr<TextTokenizer> open_sentence_piece_model(const std::filesystem::path& model) {
  return std::make_unique<PieceTokenizer>(model);
}

std::unique_ptr<DocumentSource> open_sentence_pieces(const std::filesystem::path& data,
                                                     const std::filesystem::path& model) {
  return std::make_unique<PieceDocuments>(data, model);
}

}  // namespace reckon
