#include "runtime/train/reduce/quantized_reduction.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace reckon {
namespace {

constexpr std::uint64_t kRankSeed = 0x9e3779b97f4a7c15u;  // keeps the ranks' random numbers apart

ConstBufferView bytes_view(const std::vector<std::byte>& bytes) {
  return {bytes.data(), static_cast<std::int64_t>(bytes.size()), ElementType::uint8};
}
BufferView bytes_view(std::vector<std::byte>& bytes) {
  return {bytes.data(), static_cast<std::int64_t>(bytes.size()), ElementType::uint8};
}

void require_length(std::size_t found, std::int64_t wanted) {
  if (static_cast<std::int64_t>(found) != wanted)
    throw std::logic_error("the buffer does not have the length of its parts");
}

}  // namespace

std::vector<std::int64_t> block_parts(std::int64_t elements, int ranks, int block) {
  const std::int64_t blocks = (elements + block - 1) / block;
  std::vector<std::int64_t> parts;
  for (int rank = 0; rank < ranks; ++rank) {
    const Segment part = even_segment(blocks, ranks, rank);
    const std::int64_t first = std::min(part.offset * block, elements);
    parts.push_back(std::min((part.offset + part.count) * block, elements) - first);
  }
  return parts;
}

QuantizedReduction::QuantizedReduction(Communicator& group, Storage wire, std::vector<std::int64_t> parts)
    : group_(group), wire_(wire), parts_(std::move(parts)) {
  check_storage(wire_);
  if (static_cast<int>(parts_.size()) != group_.size())
    throw std::logic_error("a quantized reduction needs one part for every rank");
  std::int64_t offset = 0;
  for (const std::int64_t part : parts_) {
    offsets_.push_back(offset);
    offset += part;
    part_bytes_.push_back(storage_bytes(wire_, part).value);
  }
  total_bytes_ = std::accumulate(part_bytes_.begin(), part_bytes_.end(), std::int64_t{0});
}

void QuantizedReduction::start(std::span<const float> gradients, const QuantizeOptions& options) {
  require_length(gradients.size(), std::accumulate(parts_.begin(), parts_.end(), std::int64_t{0}));
  options_ = options;
  sent_.resize(static_cast<std::size_t>(total_bytes_));
  std::span<std::byte> rest(sent_);
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    QuantizeOptions rounding = options;
    rounding.seed += kRankSeed * static_cast<std::uint64_t>(group_.rank() + 1);
    rounding.first_index += offsets_[part];
    const auto bytes = static_cast<std::size_t>(part_bytes_[part]);
    quantize(gradients.subspan(static_cast<std::size_t>(offsets_[part]), static_cast<std::size_t>(parts_[part])), wire_,
             rounding, rest.first(bytes));
    rest = rest.subspan(bytes);
  }
  const std::int64_t own_bytes = part_bytes_[static_cast<std::size_t>(group_.rank())];
  const std::vector<std::int64_t> receive_counts(parts_.size(), own_bytes);
  received_.resize(static_cast<std::size_t>(own_bytes) * parts_.size());
  pending_ = group_.all_to_all(bytes_view(std::as_const(sent_)), part_bytes_, bytes_view(received_), receive_counts);
}

OperationTime QuantizedReduction::reduce(std::span<float> own_sum) {
  require_length(own_sum.size(), own_elements());
  const OperationTime time = pending_.wait();
  sent_ = {};
  const std::size_t bytes = received_.size() / parts_.size();
  std::span<const std::byte> rest(received_);
  dequantize(rest.first(bytes), wire_, own_sum);
  for (std::size_t rank = 1; rank < parts_.size(); ++rank) {
    rest = rest.subspan(bytes);
    dequantize_add(rest.first(bytes), wire_, own_sum);
  }
  received_ = {};
  return time;
}

/// Alike on all ranks; other numbers than any rank's first rounding.
QuantizeOptions QuantizedReduction::second_rounding() const {
  QuantizeOptions rounding = options_;
  rounding.first_index += offsets_[static_cast<std::size_t>(group_.rank())];
  return rounding;
}

void QuantizedReduction::round_as_gathered(std::span<float> own_sum) {
  require_length(own_sum.size(), own_elements());
  sent_.resize(static_cast<std::size_t>(storage_bytes(wire_, own_elements()).value));
  quantize(own_sum, wire_, second_rounding(), sent_);
  dequantize(sent_, wire_, own_sum);
}

void QuantizedReduction::start_gather(std::span<float> own_sum) {
  round_as_gathered(own_sum);
  received_.resize(static_cast<std::size_t>(total_bytes_));
  pending_ = group_.all_gather(bytes_view(std::as_const(sent_)), bytes_view(received_), part_bytes_);
}

OperationTime QuantizedReduction::finish_gather(std::span<float> gradients) {
  require_length(gradients.size(), std::accumulate(parts_.begin(), parts_.end(), std::int64_t{0}));
  const OperationTime time = pending_.wait();
  std::span<const std::byte> rest(received_);
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    const auto bytes = static_cast<std::size_t>(part_bytes_[part]);
    dequantize(rest.first(bytes), wire_,
               gradients.subspan(static_cast<std::size_t>(offsets_[part]), static_cast<std::size_t>(parts_[part])));
    rest = rest.subspan(bytes);
  }
  sent_ = {};
  received_ = {};
  return time;
}

Bytes QuantizedReduction::buffer_bytes() const {
  return Bytes(static_cast<std::int64_t>(sent_.size() + received_.size()));
}

}  // namespace reckon
