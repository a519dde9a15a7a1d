// Index layout (megatron/core/datasets/indexed_dataset.py): "MMIDIDX\0\0", u64 version 1, u8 type code, u64
// sequences, u64 document borders, i32 lengths[sequences], i64 byte pointers[sequences], i64 borders[..] in sequences,
// and for multimodal data i8 modes[sequences].
#include "plan/megatron_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>

#include "plan/errors.h"
#include "plan/little_endian.h"
#include "plan/read_only_file.h"

namespace reckon {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
constexpr std::int64_t kHeaderBytes = 9 + 8 + 1 + 8 + 8;

[[noreturn]] void refuse(const ReadOnlyFile& file, std::string message) {
  throw ConfigError({{std::move(message), file.name(), 0, 0, {}}});
}

struct TokenType {
  int code;
  std::int64_t bytes;
  std::int64_t most;  // largest token
};
constexpr TokenType kTypes[] = {{1, 1, 255},        {2, 1, 127},        {3, 2, 32767},
                                {4, 4, 2147483646}, {5, 8, 2147483646}, {8, 2, 65535}};

std::int64_t token_at(const char* at, int code) {
  switch (code) {
    case 1: return read_little_endian<std::uint8_t>(at);
    case 2: return read_little_endian<std::int8_t>(at);
    case 3: return read_little_endian<std::int16_t>(at);
    case 4: return read_little_endian<std::int32_t>(at);
    case 5: return read_little_endian<std::int64_t>(at);
    default: return read_little_endian<std::uint16_t>(at);
  }
}

class MegatronDataset : public DocumentSource {
 public:
  MegatronDataset(const fs::path& index, const fs::path& data) : index_(index), data_(data) {
    if (index_.size() < kHeaderBytes || index_.read_text(0, 9) != kMagic)
      refuse(index_, "is not a Megatron index: it does not start with MMIDIDX");
    const std::string head = index_.read_text(0, kHeaderBytes);
    const auto version = read_little_endian<std::uint64_t>(&head[9]);
    if (version != 1) refuse(index_, fmt::format("has index version {}; version 1 can be read", version));
    const int code = static_cast<unsigned char>(head[17]);
    const auto* known =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TokenType& t) { return t.code == code; });
    if (known == std::end(kTypes))
      refuse(index_, fmt::format("has tokens of type code {}, which are no whole numbers", code));
    type_ = *known;
    read_tables(read_little_endian<std::int64_t>(&head[18]), read_little_endian<std::int64_t>(&head[26]));
  }

  std::int64_t vocabulary() const override { return type_.most + 1; }
  std::int64_t documents() const override { return static_cast<std::int64_t>(first_sequence_.size()) - 1; }
  std::int64_t length(std::int64_t document) const override {
    const auto i = static_cast<std::size_t>(document);
    return token_starts_[first_sequence_.at(i + 1)] - token_starts_[first_sequence_.at(i)];
  }

  void read(std::int64_t document, std::int64_t first, std::span<std::int32_t> into) const override {
    if (first < 0 || static_cast<std::int64_t>(into.size()) > length(document) - first)
      throw std::out_of_range("tokens beyond the end of a document");
    std::int64_t token = token_starts_[first_sequence_[static_cast<std::size_t>(document)]] + first;
    while (!into.empty()) {  // sequence by sequence
      const auto next = std::upper_bound(token_starts_.begin(), token_starts_.end(), token);
      const auto sequence = static_cast<std::size_t>(next - token_starts_.begin()) - 1;
      const auto count = static_cast<std::size_t>(std::min(*next - token, static_cast<std::int64_t>(into.size())));
      read_run(pointers_[sequence] + (token - token_starts_[sequence]) * type_.bytes, into.first(count));
      into = into.subspan(count);
      token += static_cast<std::int64_t>(count);
    }
  }

 private:
  void read_tables(std::int64_t sequences, std::int64_t borders) {
    const std::int64_t most = index_.size() / 8;
    if (sequences < 1 || borders < 2 || sequences > most || borders > most)
      refuse(index_, fmt::format("lists {} sequences and {} document borders: nothing to read", sequences, borders));
    const std::int64_t tables = kHeaderBytes + sequences * 12 + borders * 8;
    if (index_.size() != tables && index_.size() != tables + sequences)
      refuse(index_, fmt::format("has {} bytes, its header asks for {}", index_.size(), tables));
    const std::string lengths = index_.read_text(kHeaderBytes, sequences * 4);
    const std::string pointers = index_.read_text(kHeaderBytes + sequences * 4, sequences * 8);
    const std::string documents = index_.read_text(kHeaderBytes + sequences * 12, borders * 8);
    token_starts_.push_back(0);
    for (std::size_t i = 0; i < static_cast<std::size_t>(sequences); ++i) {
      const std::int64_t length = read_little_endian<std::int32_t>(&lengths[i * 4]);
      const auto pointer = read_little_endian<std::int64_t>(&pointers[i * 8]);
      if (length < 0 || pointer < 0 || pointer > data_.size() || length * type_.bytes > data_.size() - pointer)
        refuse(index_, fmt::format("sequence {} lies outside the data file of {} bytes", i, data_.size()));
      pointers_.push_back(pointer);
      token_starts_.push_back(token_starts_.back() + length);
    }
    if (token_starts_.back() > data_.size() / type_.bytes)
      refuse(index_,
             fmt::format("lists {} tokens; the data file of {} bytes has fewer", token_starts_.back(), data_.size()));
    std::int64_t last = -1;
    for (std::size_t i = 0; i < static_cast<std::size_t>(borders); ++i) {
      const auto border = read_little_endian<std::int64_t>(&documents[i * 8]);
      const bool first_is_zero = i > 0 || border == 0,
                 last_is_end = i + 1 < static_cast<std::size_t>(borders) || border == sequences;
      if (border < last || border > sequences || !first_is_zero || !last_is_end)
        refuse(index_, "has document borders that do not rise from 0 to the number of sequences");
      const auto sequence = static_cast<std::size_t>(border);
      const bool empty = i > 0 && token_starts_[sequence] == token_starts_[first_sequence_.back()];
      if (!empty) first_sequence_.push_back(sequence);
      last = border;
    }
    if (first_sequence_.size() < 2) refuse(index_, "holds no token");
  }

  void read_run(std::int64_t byte, std::span<std::int32_t> into) const {
    const auto width = static_cast<std::size_t>(type_.bytes);
    const std::string bytes = data_.read_text(byte, static_cast<std::int64_t>(into.size() * width));
    for (std::size_t i = 0; i < into.size(); ++i) {
      const std::int64_t token = token_at(&bytes[i * width], type_.code);
      if (token < 0 || token > type_.most)
        refuse(data_, fmt::format("holds token {} at byte {}", token, byte + static_cast<std::int64_t>(i * width)));
      into[i] = static_cast<std::int32_t>(token);
    }
  }

  ReadOnlyFile index_, data_;
  TokenType type_{};
  std::vector<std::int64_t> pointers_;       // byte of each sequence
  std::vector<std::int64_t> token_starts_;   // tokens before each sequence; one more than sequences
  std::vector<std::size_t> first_sequence_;  // of each document that is not empty; one more than documents
};

}  // namespace

std::unique_ptr<DocumentSource> open_megatron(const fs::path& path) {
  return std::make_unique<MegatronDataset>(fs::path(path).replace_extension(".idx"),
                                           fs::path(path).replace_extension(".bin"));
}

}  // namespace reckon
