#include "runtime/train/input/token_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "plan/document_lengths.h"
#include "plan/errors.h"
#include "plan/read_only_file.h"
#include "plan/split_mix.h"
#include "plan/token_file.h"
#include "runtime/train/input/sentence_pieces.h"

namespace reckon {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw ConfigError({{message, {}, 0, 0, "train.data"}});
}

/// Holds tokens already, so that no tokenizer applies.
bool holds_tokens(const std::filesystem::path& data) {
  if (folder_exists(data)) return false;
  const std::filesystem::path ending = data.extension();
  return ending == ".idx" || ending == ".bin" || is_token_file(data);
}

std::unique_ptr<DocumentSource> open_source(const std::string& data, const std::string& tokenizer) {
  if (tokenizer == "bytes") return open_documents(data);
  if (holds_tokens(data))
    throw ConfigError(
        {{fmt::format("{} holds tokens already; a tokenizer is for text: leave train.tokenizer out", data),
          {},
          0,
          0,
          "train.tokenizer"}});
  return open_sentence_pieces(data, tokenizer);
}

/// The file or folder that the tokens come from, empty = none.
std::string data_of(const Plan& plan) {
  if (!names_documents(plan.documents.source)) return plan.train.data;
  const auto refuse_key = [](const char* key, std::string message) {
    throw ConfigError({{std::move(message), {}, 0, 0, key}});
  };
  if (!plan.train.data.empty())
    refuse_key("train.data", fmt::format("documents.source names the documents of {} already; leave train.data out",
                                         plan.documents.source));
  if (plan.train.tokenizer != "bytes")
    refuse_key("train.tokenizer",
               "documents are packed by their lengths in tokens, so they have to be tokens already; "
               "make a token file with 'reckon tokenize' and name it as documents.source");
  return plan.documents.source;
}

}  // namespace

TokenStream::TokenStream(const Plan& plan)
    : seed_(plan.train.seed),
      vocabulary_(static_cast<std::uint64_t>(plan.model.vocabulary)),
      has_borders_(names_documents(plan.documents.source)) {
  const std::string data = data_of(plan);
  if (data.empty()) return;
  source_ = open_source(data, plan.train.tokenizer);
  if (source_->vocabulary() > plan.model.vocabulary)
    refuse(fmt::format("tokens of {} go up to {}, but the model has a vocabulary of {}; it needs at least {}", data,
                       source_->vocabulary() - 1, plan.model.vocabulary, source_->vocabulary()));
  starts_.push_back(0);
  for (const std::int64_t length : source_->lengths()) starts_.push_back(starts_.back() + length);
  const bool is_mapped = !folder_exists(data) && is_token_file(data);  // read piece by piece
  for (std::int64_t document = 0; !is_mapped && document < source_->documents(); ++document) {
    const std::vector<std::int32_t> tokens = source_->read_all(document);
    in_memory_.insert(in_memory_.end(), tokens.begin(), tokens.end());
  }
  const std::int64_t needed = plan.has_documents() ? 1 : plan.batch.sequence_length + 1;
  if (starts_.back() < needed)
    refuse(fmt::format("{} holds {} tokens, but one row needs {}", data, starts_.back(), needed));
}

void TokenStream::read(std::int64_t step, std::int64_t sample, std::span<std::int32_t> into) const {
  const std::uint64_t key =
      split_mix(split_mix(seed_ + (static_cast<std::uint64_t>(step) << 32)) + static_cast<std::uint64_t>(sample));
  if (source_) {
    const auto places = static_cast<std::uint64_t>(starts_.back()) - into.size() + 1;
    read_stream(static_cast<std::int64_t>(key % places), into);
    return;
  }
  for (std::size_t t = 0; t < into.size(); ++t) into[t] = static_cast<std::int32_t>(split_mix(key + t) % vocabulary_);
}

void TokenStream::read_document(std::int64_t document, std::int64_t first, std::span<std::int32_t> into) const {
  if (has_borders_) {
    const std::int64_t index = document % source_->documents();
    if (in_memory_.empty()) return source_->read(index, first, into);
    return read_stream(starts_[static_cast<std::size_t>(index)] + first, into);
  }
  const std::uint64_t key = split_mix(split_mix(seed_) + static_cast<std::uint64_t>(document));
  if (!source_) {
    for (std::size_t t = 0; t < into.size(); ++t)
      into[t] = static_cast<std::int32_t>(split_mix(key + static_cast<std::uint64_t>(first) + t) % vocabulary_);
    return;
  }
  const std::int64_t size = starts_.back();
  auto at = static_cast<std::int64_t>((key + static_cast<std::uint64_t>(first)) % static_cast<std::uint64_t>(size));
  while (!into.empty()) {
    const auto part = into.first(std::min(into.size(), static_cast<std::size_t>(size - at)));
    read_stream(at, part);
    into = into.subspan(part.size());
    at = 0;
  }
}

void TokenStream::read_stream(std::int64_t first, std::span<std::int32_t> into) const {
  if (!in_memory_.empty()) {
    std::copy_n(in_memory_.begin() + first, into.size(), into.begin());
    return;
  }
  auto document = std::upper_bound(starts_.begin(), starts_.end(), first) - starts_.begin() - 1;
  while (!into.empty()) {
    const std::int64_t offset = first - starts_[static_cast<std::size_t>(document)];
    const std::int64_t left = starts_[static_cast<std::size_t>(document) + 1] - first;
    const auto part = into.first(std::min(into.size(), static_cast<std::size_t>(left)));
    source_->read(document, offset, part);
    into = into.subspan(part.size());
    first += static_cast<std::int64_t>(part.size());
    ++document;
  }
}

}  // namespace reckon
