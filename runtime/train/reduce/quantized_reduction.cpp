#include "runtime/train/reduce/quantized_reduction.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace reckon {
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
                                       std::span<std::byte> workspace, QuantizePlace place)
    : group_(group), wire_(wire), place_(place), parts_(wire, std::move(parts)) {
  check_storage(wire_);
  if (static_cast<int>(parts_.elements.size()) != group_.size())
    throw std::logic_error("a quantized reduction needs one part for every rank");
  if (static_cast<std::int64_t>(workspace.size()) < reduction_workspace(wire_, parts_.elements).value)
    throw std::logic_error("the workspace of a quantized reduction is too small");
  sent_ = workspace.first(static_cast<std::size_t>(sum_of(parts_.bytes)));
  received_ = workspace.subspan(sent_.size());
}

void QuantizedReduction::start(std::span<const float> gradients, const QuantizeOptions& options) {
  require_length(gradients.size(), sum_of(parts_.elements));
  options_ = options;
  std::span<std::byte> rest(sent_);
  for (std::size_t part = 0; part < parts_.elements.size(); ++part) {
    QuantizeOptions rounding = options;
    rounding.seed += kRankSeed * static_cast<std::uint64_t>(group_.rank() + 1);
    rounding.first_index += parts_.offsets[part];
    const auto bytes = static_cast<std::size_t>(parts_.bytes[part]);
    place_.quantize(gradients.subspan(static_cast<std::size_t>(parts_.offsets[part]),
                                      static_cast<std::size_t>(parts_.elements[part])),
                    wire_, rounding, rest.first(bytes));
    rest = rest.subspan(bytes);
  }
  const std::vector<std::int64_t> receive_counts(parts_.elements.size(), own_bytes());
  pending_ =
      group_.all_to_all(bytes_view(sent_), parts_.bytes,
                        bytes_view(received_.first(static_cast<std::size_t>(sum_of(receive_counts)))), receive_counts);
}

OperationTime QuantizedReduction::reduce(std::span<float> own_sum) {
  require_length(own_sum.size(), own_elements());
  const OperationTime time = pending_.wait();
  const auto bytes = static_cast<std::size_t>(own_bytes());
  std::span<const std::byte> rest(received_);
  place_.dequantize(rest.first(bytes), wire_, own_sum);
  for (std::size_t rank = 1; rank < parts_.elements.size(); ++rank) {
    rest = rest.subspan(bytes);
    place_.dequantize_add(rest.first(bytes), wire_, own_sum);
  }
  return time;
}

/// Alike on all ranks; other numbers than any rank's first rounding.
QuantizeOptions QuantizedReduction::second_rounding() const {
  QuantizeOptions rounding = options_;
  rounding.first_index += parts_.offsets[static_cast<std::size_t>(group_.rank())];
  return rounding;
}

void QuantizedReduction::round_as_gathered(std::span<float> own_sum) {
  require_length(own_sum.size(), own_elements());
  const std::span<std::byte> bytes = sent_.first(static_cast<std::size_t>(own_bytes()));
  place_.quantize(std::span<const float>(own_sum), wire_, second_rounding(), bytes);
  place_.dequantize(bytes, wire_, own_sum);
}

void QuantizedReduction::start_gather(std::span<float> own_sum) {
  round_as_gathered(own_sum);
  pending_ =
      group_.all_gather(bytes_view(sent_.first(static_cast<std::size_t>(own_bytes()))),
                        bytes_view(received_.first(static_cast<std::size_t>(sum_of(parts_.bytes)))), parts_.bytes);
}

void QuantizedReduction::read_part(int rank, std::span<float> values) const {
  const auto part = static_cast<std::size_t>(rank);
  require_length(values.size(), parts_.elements[part]);
  const auto first = std::accumulate(parts_.bytes.begin(), parts_.bytes.begin() + rank, std::int64_t{0});
  place_.dequantize(received_.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(parts_.bytes[part])),
                    wire_, values);
}

}  // namespace reckon
