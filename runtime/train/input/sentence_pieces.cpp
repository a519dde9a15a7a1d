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

class PieceDocuments : public DocumentSource {
 public:
  PieceDocuments(const std::filesystem::path& data, const std::filesystem::path& model) {
    sentencepiece::SentencePieceProcessor processor;
    if (const auto status = processor.Load(model.string()); !status.ok())
      refuse(fmt::format("cannot be read as a SentencePiece model: {}", status.ToString()), model, "train.tokenizer");
    vocabulary_ = processor.GetPieceSize();
    for (const TextDocument& document : list_text_documents(data)) add(processor, document);
  }

  std::int64_t vocabulary() const override { return vocabulary_; }
  std::int64_t documents() const override { return static_cast<std::int64_t>(pieces_.size()); }
  std::int64_t length(std::int64_t document) const override { return static_cast<std::int64_t>(of(document).size()); }
  void read(std::int64_t document, std::int64_t first, std::span<std::int32_t> into) const override {
    std::copy_n(of(document).begin() + first, into.size(), into.begin());
  }

 private:
  void add(const sentencepiece::SentencePieceProcessor& processor, const TextDocument& document) {
    std::vector<int> ids;
    if (const auto status = processor.Encode(read_text(document), &ids); !status.ok())
      refuse(fmt::format("cannot be cut into pieces: {}", status.ToString()), document.file, "train.data");
    if (processor.eos_id() >= 0) ids.push_back(processor.eos_id());
    if (ids.empty()) refuse("this document gives no piece", document.file, "train.data");
    pieces_.emplace_back(ids.begin(), ids.end());
  }

  const std::vector<std::int32_t>& of(std::int64_t document) const {
    return pieces_.at(static_cast<std::size_t>(document));
  }

  std::int64_t vocabulary_ = 0;
  std::vector<std::vector<std::int32_t>> pieces_;
};

}  // namespace

std::unique_ptr<DocumentSource> open_sentence_pieces(const std::filesystem::path& data,
                                                     const std::filesystem::path& model) {
  return std::make_unique<PieceDocuments>(data, model);
}

}  // namespace reckon
