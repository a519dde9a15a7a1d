#include "runtime/train/reduce/quantized_reduction.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace reckon {
namespace {

constexpr std::uint64_t kRankSeed = 0x9e3779b97f4a7c15u;  // keeps the ranks' random numbers apart

BufferView bytes_view(std::span<std::byte> bytes) {
  return {bytes.data(), static_cast<std::int64_t>(bytes.size()), ElementType::uint8};
}

std::size_t sum_of(const std::vector<std::int64_t>& counts) {
  return static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
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

Bytes reduction_workspace(Storage wire, const std::vector<std::int64_t>& parts) {
  std::int64_t sent = 0, largest = 0;
  for (const std::int64_t part : parts) {
    const std::int64_t bytes = storage_bytes(wire, part).value;
    sent += bytes;
    largest = std::max(largest, bytes);
  }
  return Bytes(sent + largest * static_cast<std::int64_t>(parts.size()));
}

QuantizedReduction::QuantizedReduction(Communicator& group, Storage wire, std::vector<std::int64_t> parts,
                                       std::span<std::byte> workspace)
    : group_(group), wire_(wire), parts_(std::move(parts)) {
  check_storage(wire_);
  if (static_cast<int>(parts_.size()) != group_.size())
    throw std::logic_error("a quantized reduction needs one part for every rank");
  if (static_cast<std::int64_t>(workspace.size()) < reduction_workspace(wire_, parts_).value)
    throw std::logic_error("the workspace of a quantized reduction is too small");
  std::int64_t offset = 0;
  for (const std::int64_t part : parts_) {
    offsets_.push_back(offset);
    offset += part;
    part_bytes_.push_back(storage_bytes(wire_, part).value);
  }
  sent_ = workspace.first(sum_of(part_bytes_));
  received_ = workspace.subspan(sent_.size());
}

void QuantizedReduction::start(std::span<const float> gradients, const QuantizeOptions& options) {
  require_length(gradients.size(), static_cast<std::int64_t>(sum_of(parts_)));
  options_ = options;
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
  const std::vector<std::int64_t> receive_counts(parts_.size(), own_bytes());
  pending_ = group_.all_to_all(bytes_view(sent_), part_bytes_, bytes_view(received_.first(sum_of(receive_counts))),
                               receive_counts);
}

OperationTime QuantizedReduction::reduce(std::span<float> own_sum) {
  require_length(own_sum.size(), own_elements());
  const OperationTime time = pending_.wait();
  const auto bytes = static_cast<std::size_t>(own_bytes());
  std::span<const std::byte> rest(received_);
  dequantize(rest.first(bytes), wire_, own_sum);
  for (std::size_t rank = 1; rank < parts_.size(); ++rank) {
    rest = rest.subspan(bytes);
    dequantize_add(rest.first(bytes), wire_, own_sum);
  }
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
  const std::span<std::byte> bytes = sent_.first(static_cast<std::size_t>(own_bytes()));
  quantize(own_sum, wire_, second_rounding(), bytes);
  dequantize(bytes, wire_, own_sum);
}

void QuantizedReduction::start_gather(std::span<float> own_sum) {
  round_as_gathered(own_sum);
  pending_ = group_.all_gather(bytes_view(sent_.first(static_cast<std::size_t>(own_bytes()))),
                               bytes_view(received_.first(sum_of(part_bytes_))), part_bytes_);
}

void QuantizedReduction::read_part(int rank, std::span<float> values) const {
  const auto part = static_cast<std::size_t>(rank);
  require_length(values.size(), parts_[part]);
  const auto first = std::accumulate(part_bytes_.begin(), part_bytes_.begin() + rank, std::int64_t{0});
  dequantize(received_.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(part_bytes_[part])), wire_,
             values);
}

}  // namespace reckon
