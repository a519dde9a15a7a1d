#include "plan/byte_tokens.h"

#include <algorithm>
#include <stdexcept>

#include "plan/text_documents.h"

namespace reckon {

namespace {

class TextSource : public DocumentSource {
 public:
  explicit TextSource(std::vector<TextDocument> list) : list_(std::move(list)) {
    for (const TextDocument& document : list_) {
      const bool decoded = document.line > 0;  // escapes make a JSON string longer than its text
      const std::int64_t bytes = decoded ? static_cast<std::int64_t>(read_text(document).size()) : document.bytes;
      lengths_.push_back(bytes + 1);
    }
  }

  std::int64_t vocabulary() const override { return kByteVocabulary; }
  std::int64_t documents() const override { return static_cast<std::int64_t>(list_.size()); }
  std::int64_t length(std::int64_t document) const override { return lengths_.at(static_cast<std::size_t>(document)); }

  void read(std::int64_t document, std::int64_t first, std::span<std::int32_t> into) const override {
    const std::vector<std::int32_t> tokens = byte_tokens(read_text(list_.at(static_cast<std::size_t>(document))));
    if (first < 0 || first + static_cast<std::int64_t>(into.size()) > static_cast<std::int64_t>(tokens.size()))
      throw std::out_of_range("tokens beyond the end of a document");
    std::copy_n(tokens.begin() + first, into.size(), into.begin());
  }

 private:
  std::vector<TextDocument> list_;
  std::vector<std::int64_t> lengths_;
};

}  // namespace

std::vector<std::int32_t> byte_tokens(std::string_view text) {
  std::vector<std::int32_t> tokens;
  tokens.reserve(text.size() + 1);
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  tokens.push_back(kEndToken);
  return tokens;
}

std::unique_ptr<DocumentSource> open_text(const std::filesystem::path& path) {
  return std::make_unique<TextSource>(list_text_documents(path));
}

}  // namespace reckon
