#include "plan/token_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "plan/errors.h"
#include "plan/little_endian.h"
#include "plan/read_only_file.h"

namespace reckon {

namespace {

constexpr std::string_view kMagic = "RECKONTK";
constexpr std::int64_t kHeaderBytes = 56, kCheckedHeaderBytes = 48, kReadBytes = 1 << 20;
constexpr std::uint64_t kFnvStart = 14695981039346656037ull, kFnvPrime = 1099511628211ull;

std::uint64_t fnv1a(std::string_view bytes, std::uint64_t hash) {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * kFnvPrime;
  return hash;
}

[[noreturn]] void refuse(const std::string& file, std::string message) {
  throw ConfigError({{std::move(message), file, 0, 0, {}}});
}

struct Header {
  std::int64_t token_bytes = 0, vocabulary = 0, documents = 0, tokens = 0;
  std::uint64_t token_checksum = 0, index_checksum = 0;
};

std::string header_text(const Header& header) {
  std::string bytes(kMagic);
  append_little_endian(bytes, std::uint32_t{1});
  append_little_endian(bytes, static_cast<std::uint32_t>(header.token_bytes));
  append_little_endian(bytes, header.vocabulary);
  append_little_endian(bytes, header.documents);
  append_little_endian(bytes, header.tokens);
  append_little_endian(bytes, header.token_checksum);
  return bytes;  // the index checksum follows
}

std::string starts_text(const std::vector<std::uint64_t>& starts) {
  std::string bytes;
  for (const std::uint64_t start : starts) append_little_endian(bytes, start);
  return bytes;
}

Header read_header(const ReadOnlyFile& file) {
  if (file.size() < kHeaderBytes) refuse(file.name(), "is too short for a token file");
  const std::string bytes = file.read_text(0, kHeaderBytes);
  if (!bytes.starts_with(kMagic)) refuse(file.name(), "is not a token file: it does not start with RECKONTK");
  const auto version = read_little_endian<std::uint32_t>(&bytes[8]);
  if (version != 1) refuse(file.name(), fmt::format("has token file version {}; version 1 can be read", version));
  Header header;
  header.token_bytes = read_little_endian<std::uint32_t>(&bytes[12]);
  header.vocabulary = read_little_endian<std::int64_t>(&bytes[16]);
  header.documents = read_little_endian<std::int64_t>(&bytes[24]);
  header.tokens = read_little_endian<std::int64_t>(&bytes[32]);
  header.token_checksum = read_little_endian<std::uint64_t>(&bytes[40]);
  header.index_checksum = read_little_endian<std::uint64_t>(&bytes[48]);
  const bool known_width = header.token_bytes == 1 || header.token_bytes == 2 || header.token_bytes == 4;
  const bool sane = known_width && header.vocabulary > 0 && header.vocabulary <= (std::int64_t{1} << 31) &&
                    header.documents > 0 && header.tokens >= header.documents && header.tokens <= file.size();
  if (!sane) refuse(file.name(), "has a token file header that cannot be true: the file is damaged");
  const std::int64_t bytes_needed = kHeaderBytes + header.tokens * header.token_bytes + (header.documents + 1) * 8;
  if (bytes_needed != file.size())
    refuse(file.name(), fmt::format("has {} bytes, its header asks for {}: the file is damaged or incomplete",
                                    file.size(), bytes_needed));
  return header;
}

class TokenFile : public DocumentSource {
 public:
  explicit TokenFile(const std::filesystem::path& path) : file_(path), header_(read_header(file_)) {
    const std::int64_t at = kHeaderBytes + header_.tokens * header_.token_bytes;
    const std::string bytes = file_.read_text(at, (header_.documents + 1) * 8);
    if (fnv1a(bytes, fnv1a(file_.read_text(0, kCheckedHeaderBytes), kFnvStart)) != header_.index_checksum)
      refuse(file_.name(), "has a wrong index checksum: the file is damaged");
    for (std::size_t i = 0; i < bytes.size(); i += 8) starts_.push_back(read_little_endian<std::int64_t>(&bytes[i]));
    const bool rising = std::adjacent_find(starts_.begin(), starts_.end(), std::greater_equal<>()) == starts_.end();
    if (!rising || starts_.front() != 0 || starts_.back() != header_.tokens)
      refuse(file_.name(), "has document borders that do not rise from 0 to the number of tokens");
  }

  std::int64_t vocabulary() const override { return header_.vocabulary; }
  std::int64_t documents() const override { return header_.documents; }
  std::int64_t length(std::int64_t document) const override {
    const auto i = static_cast<std::size_t>(document);
    return starts_.at(i + 1) - starts_.at(i);
  }

  void read(std::int64_t document, std::int64_t first, std::span<std::int32_t> into) const override {
    const auto count = static_cast<std::int64_t>(into.size());
    if (first < 0 || count > length(document) - first) throw std::out_of_range("tokens beyond the end of a document");
    const std::int64_t start = starts_[static_cast<std::size_t>(document)] + first, width = header_.token_bytes;
    const std::string bytes = file_.read_text(kHeaderBytes + start * width, count * width);
    for (std::size_t i = 0; i < into.size(); ++i) {
      const char* at = &bytes[i * static_cast<std::size_t>(width)];
      const std::int64_t token = width == 1   ? read_little_endian<std::uint8_t>(at)
                                 : width == 2 ? read_little_endian<std::uint16_t>(at)
                                              : read_little_endian<std::int32_t>(at);
      if (token < 0 || token >= header_.vocabulary)
        refuse(file_.name(), fmt::format("holds token {} at {}; its vocabulary has {}", token,
                                         start + static_cast<std::int64_t>(i), header_.vocabulary));
      into[i] = static_cast<std::int32_t>(token);
    }
  }

 private:
  ReadOnlyFile file_;
  Header header_;
  std::vector<std::int64_t> starts_;
};

}  // namespace

bool is_token_file(const std::filesystem::path& path) {
  const ReadOnlyFile file(path);
  return file.size() >= kHeaderBytes && file.read_text(0, 8) == kMagic;
}

std::unique_ptr<DocumentSource> open_token_file(const std::filesystem::path& path) {
  return std::make_unique<TokenFile>(path);
}

void verify_token_file(const std::filesystem::path& path) {
  const ReadOnlyFile file(path);
  const Header header = read_header(file);
  const std::int64_t end = kHeaderBytes + header.tokens * header.token_bytes;
  std::uint64_t hash = kFnvStart;
  for (std::int64_t at = kHeaderBytes; at < end; at += kReadBytes)
    hash = fnv1a(file.read_text(at, std::min(kReadBytes, end - at)), hash);
  if (hash != header.token_checksum) refuse(file.name(), "has a wrong token checksum: the file is damaged");
}

TokenFileWriter::TokenFileWriter(const std::filesystem::path& path, std::int64_t vocabulary)
    : path_(path), unfinished_(path.string() + ".unfinished"), vocabulary_(vocabulary), checksum_(kFnvStart) {
  if (vocabulary < 1 || vocabulary > (std::int64_t{1} << 31))
    throw ConfigError(fmt::format("a vocabulary of {} tokens cannot be stored; 1 to 2^31 can", vocabulary));
  token_bytes_ = vocabulary <= 256 ? 1 : vocabulary <= 65536 ? 2 : 4;
  out_.open(unfinished_, std::ios::binary | std::ios::trunc);
  out_ << std::string(kHeaderBytes, '\0');
  if (!out_) throw RunError(fmt::format("{} cannot be written: {}", unfinished_.string(), std::strerror(errno)));
}

TokenFileWriter::~TokenFileWriter() {
  std::error_code ignored;
  out_.close();
  std::filesystem::remove(unfinished_, ignored);
}

void TokenFileWriter::add(std::span<const std::int32_t> document) {
  if (document.empty()) return;
  std::string bytes;
  for (const std::int32_t token : document) {
    if (token < 0 || token >= vocabulary_)
      throw ConfigError(fmt::format("token {} does not belong to a vocabulary of {}", token, vocabulary_));
    if (token_bytes_ == 1) append_little_endian(bytes, static_cast<std::uint8_t>(token));
    else if (token_bytes_ == 2) append_little_endian(bytes, static_cast<std::uint16_t>(token));
    else append_little_endian(bytes, token);
  }
  checksum_ = fnv1a(bytes, checksum_);
  out_ << bytes;
  starts_.push_back(starts_.back() + document.size());
}

void TokenFileWriter::finish() {
  if (starts_.size() == 1) throw ConfigError("a token file needs at least one document that is not empty");
  Header header;
  header.token_bytes = token_bytes_;
  header.vocabulary = vocabulary_;
  header.documents = static_cast<std::int64_t>(starts_.size()) - 1;
  header.tokens = static_cast<std::int64_t>(starts_.back());
  header.token_checksum = checksum_;
  const std::string starts = starts_text(starts_);
  std::string head = header_text(header);
  append_little_endian(head, fnv1a(starts, fnv1a(head, kFnvStart)));
  out_ << starts;
  out_.seekp(0);
  out_ << head;
  out_.close();
  std::error_code problem;
  if (out_) std::filesystem::rename(unfinished_, path_, problem);
  if (!out_ || problem)
    throw RunError(fmt::format("{} cannot be written: {}", path_.string(),
                               problem ? problem.message() : std::string(std::strerror(errno))));
}

}  // namespace reckon
