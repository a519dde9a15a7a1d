// The tokens of every sample of every step: a function of (seed, step, sample, position) alone, so that a global batch
// is the same however it is split over ranks and micro-batches.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "plan/document_source.h"
#include "plan/plan.h"

namespace reckon {

class TokenStream {
 public:
  /// Opens train.data (a text folder, a JSONL file or a token file), or documents.source where that names documents;
  /// pseudo-random tokens when neither does. Text is read whole and checked here. Throws ConfigError: nothing to read,
  /// both are given, fewer tokens than a row needs, or tokens outside the model's vocabulary.
  explicit TokenStream(const Plan& plan);

  /// Tokens of `sample` (numbered through the global batch) of `step`. With m = SplitMix64's output function and
  /// key = m(m(seed + step * 2^32) + sample): token t is m(key + t) mod vocabulary without data, otherwise token
  /// key mod (size - length + 1) + t of all documents laid end to end.
  void read(std::int64_t step, std::int64_t sample, std::span<std::int32_t> into) const;

  /// Tokens first, first + 1, ... of document `document` of the plan's stream of documents (StepPacker). Documents of
  /// documents.source start again at its end. Where it gives lengths only: with key = m(m(seed) + document), token t is
  /// m(key + t) mod vocabulary without data, otherwise token (key + t) mod size of train.data.
  void read_document(std::int64_t document, std::int64_t first, std::span<std::int32_t> into) const;

 private:
  void read_stream(std::int64_t first, std::span<std::int32_t> into) const;

  std::uint64_t seed_;
  std::uint64_t vocabulary_;
  std::unique_ptr<DocumentSource> source_;
  bool has_borders_ = false;             // the source's documents are the plan's
  std::vector<std::int64_t> starts_;     // of each document in the stream, and its end
  std::vector<std::int32_t> in_memory_;  // the whole stream where the source is text
};

}  // namespace reckon
