#include "runtime/train/reduce/hierarchical_reduction.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace reckon {
namespace {

std::size_t size(std::int64_t bytes) {
  return static_cast<std::size_t>(bytes);
}

}  // namespace

Bytes hierarchical_workspace(Storage wire, const std::vector<std::int64_t>& parts, int inside) {
  std::vector<std::int64_t> places(size(inside));  // bytes of each place's parts
  std::int64_t sent = 0, largest = 0;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const std::int64_t bytes = storage_bytes(wire, parts[part]).value;
    sent += bytes;
    largest = std::max(largest, bytes);
    places[part % size(inside)] += bytes;
  }
  const std::int64_t nodes = static_cast<std::int64_t>(parts.size()) / inside;
  return Bytes(sent + std::max(inside * *std::max_element(places.begin(), places.end()), nodes * largest));
}

HierarchicalReduction::HierarchicalReduction(Communicator& inside, Communicator& across, Storage wire,
                                             std::vector<std::int64_t> parts, std::span<std::byte> workspace,
                                             QuantizePlace place)
    : inside_(inside), across_(across), wire_(wire), place_(place), parts_(wire, std::move(parts)) {
  check_storage(wire_);
  if (static_cast<int>(parts_.elements.size()) != inside_.size() * across_.size())
    throw std::logic_error("a hierarchical reduction needs one part for every rank of every node");
  if (static_cast<std::int64_t>(workspace.size()) <
      hierarchical_workspace(wire_, parts_.elements, inside_.size()).value)
    throw std::logic_error("the workspace of a hierarchical reduction is too small");
  sent_ = workspace.first(size(sum_of(parts_.bytes)));
  received_ = workspace.subspan(sent_.size());
}

std::int64_t HierarchicalReduction::place_bytes(int place) const {
  std::int64_t bytes = 0;
  for (int node = 0; node < across_.size(); ++node) bytes += parts_.bytes[part_of(node, place)];
  return bytes;
}

void HierarchicalReduction::start(std::span<const float> gradients, const QuantizeOptions& options) {
  require_length(gradients.size(), sum_of(parts_.elements));
  options_ = options;
  std::vector<std::int64_t> places;
  std::span<std::byte> rest(sent_);
  for (int place = 0; place < inside_.size(); ++place) {
    places.push_back(place_bytes(place));
    for (int node = 0; node < across_.size(); ++node) {
      const std::size_t part = part_of(node, place);
      QuantizeOptions rounding = options;
      rounding.seed += kRankSeed * static_cast<std::uint64_t>(own_part() + 1);
      rounding.first_index += parts_.offsets[part];
      place_.quantize(gradients.subspan(size(parts_.offsets[part]), size(parts_.elements[part])), wire_, rounding,
                      rest.first(size(parts_.bytes[part])));
      rest = rest.subspan(size(parts_.bytes[part]));
    }
  }
  const std::vector<std::int64_t> receive_counts(size(inside_.size()), places[size(inside_.rank())]);
  pending_ = inside_.all_to_all(bytes_view(sent_), places, bytes_view(received_.first(size(sum_of(receive_counts)))),
                                receive_counts);
}

void HierarchicalReduction::send_between(std::span<float> scratch) {
  pending_.wait();
  const std::size_t from_one = size(place_bytes(inside_.rank()));
  std::vector<std::int64_t> counts;
  std::size_t first = 0;
  for (int node = 0; node < across_.size(); ++node) {
    const std::size_t part = part_of(node, inside_.rank()), bytes = size(parts_.bytes[part]);
    const std::span<float> sum = scratch.first(size(parts_.elements[part]));
    place_.dequantize(received_.subspan(first, bytes), wire_, sum);
    for (int place = 1; place < inside_.size(); ++place)
      place_.dequantize_add(received_.subspan(size(place) * from_one + first, bytes), wire_, sum);
    QuantizeOptions rounding = options_;
    rounding.seed += kRankSeed * static_cast<std::uint64_t>(parts_.elements.size() + size(across_.rank()) + 1);
    rounding.first_index += parts_.offsets[part];
    place_.quantize(std::span<const float>(sum), wire_, rounding, sent_.subspan(first, bytes));
    counts.push_back(parts_.bytes[part]);
    first += bytes;
  }
  const std::vector<std::int64_t> receive_counts(size(across_.size()), parts_.bytes[own_part()]);
  pending_ = across_.all_to_all(bytes_view(sent_.first(first)), counts,
                                bytes_view(received_.first(size(sum_of(receive_counts)))), receive_counts);
}

void HierarchicalReduction::reduce(std::span<float> own_sum) {
  require_length(own_sum.size(), parts_.elements[own_part()]);
  pending_.wait();
  const std::size_t bytes = size(parts_.bytes[own_part()]);
  place_.dequantize(received_.first(bytes), wire_, own_sum);
  for (int node = 1; node < across_.size(); ++node)
    place_.dequantize_add(received_.subspan(size(node) * bytes, bytes), wire_, own_sum);
}

void HierarchicalReduction::round_as_gathered(std::span<float> own_sum) {
  require_length(own_sum.size(), parts_.elements[own_part()]);
  const std::span<std::byte> bytes = sent_.first(size(parts_.bytes[own_part()]));
  QuantizeOptions rounding = options_;
  rounding.first_index += parts_.offsets[own_part()];
  place_.quantize(std::span<const float>(own_sum), wire_, rounding, bytes);
  place_.dequantize(bytes, wire_, own_sum);
}

void HierarchicalReduction::start_gather(std::span<float> own_sum) {
  round_as_gathered(own_sum);
  std::vector<std::int64_t> counts;
  for (int node = 0; node < across_.size(); ++node) counts.push_back(parts_.bytes[part_of(node, inside_.rank())]);
  pending_ = across_.all_gather(bytes_view(sent_.first(size(parts_.bytes[own_part()]))),
                                bytes_view(received_.first(size(sum_of(counts)))), counts);
}

/// The sent bytes are free: the sum of every place is gathered there, by place and then by node.
void HierarchicalReduction::gather_inside() {
  pending_.wait();
  std::vector<std::int64_t> places;
  for (int place = 0; place < inside_.size(); ++place) places.push_back(place_bytes(place));
  pending_ =
      inside_.all_gather(bytes_view(received_.first(size(places[size(inside_.rank())]))), bytes_view(sent_), places);
}

void HierarchicalReduction::read_part(int rank, std::span<float> values) const {
  require_length(values.size(), parts_.elements[size(rank)]);
  const int own_node = rank / inside_.size(), own_place = rank % inside_.size();
  std::int64_t first = 0;
  for (int place = 0; place < own_place; ++place) first += place_bytes(place);
  for (int node = 0; node < own_node; ++node) first += parts_.bytes[part_of(node, own_place)];
  place_.dequantize(sent_.subspan(size(first), size(parts_.bytes[size(rank)])), wire_, values);
}

}  // namespace reckon
