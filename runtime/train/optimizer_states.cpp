// The optimizer's states as checkpoints read and write them.
#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>

#include "plan/errors.h"
#include "runtime/train/kernels/elementwise.h"
#include "runtime/train/ops/dispatch.h"
#include "runtime/train/optimizer.h"

namespace reckon {

std::vector<std::string> Optimizer::state_names() const {
  if (spec_.kind == OptimizerKind::adamw) return {"weight", "first_moment", "second_moment"};
  return {"weight"};
}

std::vector<FlatRange> Optimizer::kept_ranges() const {
  std::vector<FlatRange> ranges;
  for (const Piece& piece : pieces_) ranges.push_back(piece.range);
  return ranges;
}

std::vector<FlatRange> Optimizer::counted_ranges() const {
  std::vector<FlatRange> ranges;
  for (const Piece& piece : pieces_) ranges.insert(ranges.end(), piece.counted.begin(), piece.counted.end());
  return ranges;
}

const Optimizer::Piece& Optimizer::piece_of(std::int64_t first) const {
  const auto found = std::ranges::find_if(
      pieces_, [&](const Piece& piece) { return first >= piece.range.first && first < piece.range.end(); });
  if (found == pieces_.end()) throw std::logic_error("this rank keeps no states there");
  return *found;
}

float* Optimizer::state(const std::string& name, std::int64_t first) const {
  const Piece& piece = piece_of(first);
  const std::int64_t inside = first - piece.range.first;
  if (name == "weight" && !master_.defined()) return pointer<float>(weights_of(piece)) + inside;
  if (name != "weight" && narrow_ > 0)
    throw RunError(
        "moments in 8 bits (optimizer.states int8) cannot be saved or taken from a checkpoint yet; use fp32");
  const at::Tensor& states = name == "weight" ? master_ : name == "first_moment" ? first_.wide : second_.wide;
  return pointer<float>(states) + piece.place + inside;
}

void Optimizer::read_state(const std::string& name, std::int64_t first, std::span<float> into) const {
  std::copy_n(state(name, first), into.size(), into.begin());
}

void Optimizer::write_state(const std::string& name, std::int64_t first, std::span<const float> from) {
  std::ranges::copy(from, state(name, first));
  if (name != "weight" || !master_.defined()) return;
  const Piece& piece = piece_of(first);
  kernels::to_bfloat16(from.data(), pointer<kernels::BFloat16>(weights_of(piece)) + (first - piece.range.first),
                       static_cast<std::int64_t>(from.size()));
}

}  // namespace reckon
