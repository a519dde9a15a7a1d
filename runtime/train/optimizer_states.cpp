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

const Optimizer::Run& Optimizer::run_of(std::int64_t first) const {
  const auto found = std::ranges::find_if(
      runs_, [&](const Run& run) { return first >= run.states.range.first && first < run.states.range.end(); });
  if (found == runs_.end()) throw std::logic_error("this rank keeps no moments there");
  return *found;
}

float* Optimizer::state(const std::string& name, std::int64_t first) const {
  if (name == "weight") {
    const Piece& piece = piece_of(first);
    const std::int64_t inside = first - piece.range.first;
    return master_.defined() ? pointer<float>(master_) + piece.place + inside
                             : pointer<float>(weights_of(piece)) + inside;
  }
  const Run& run = run_of(first);
  return pointer<float>(moment(name).wide) + run.place + (first - run.states.range.first);
}

BlockPlace Optimizer::moment_blocks(std::int64_t first) const {
  if (spec_.kind != OptimizerKind::adamw) return {};
  const Run& run = run_of(first);
  if (!run.states.narrow) return {};
  return {block_, (first - run.states.range.first) % block_};
}

void Optimizer::read_state(const std::string& name, std::int64_t first, std::span<float> into) const {
  if (name == "weight" || !run_of(first).states.narrow) {
    std::copy_n(state(name, first), into.size(), into.begin());
    return;
  }
  const Run& run = run_of(first);
  const auto* codes = pointer<std::uint8_t>(moment(name).codes) + run.place + (first - run.states.range.first);
  const bool is_signed = name == "first_moment";
  for (std::size_t i = 0; i < into.size(); ++i)
    into[i] = is_signed ? static_cast<float>(static_cast<std::int8_t>(codes[i])) : static_cast<float>(codes[i]);
}

std::vector<float> Optimizer::read_scales(const std::string& name, std::int64_t first, std::int64_t count) const {
  const Run& run = run_of(first);
  const std::int64_t inside = first - run.states.range.first;
  const float* scales = pointer<float>(moment(name).scales) + run.block + inside / block_;
  return {scales, scales + moment_blocks(first).blocks(count)};
}

void Optimizer::write_narrow(const std::string& name, std::int64_t first, const ReadMoments& from) {
  const Run& run = run_of(first);
  const std::int64_t count = run.states.range.count, inside = first - run.states.range.first;
  const std::span scales(pointer<float>(moment(name).scales) + run.block,
                         static_cast<std::size_t>((count + block_ - 1) / block_));
  const auto put = [&](auto* codes) {
    put_moments({std::span(codes + run.place, static_cast<std::size_t>(count)), scales, block_}, inside, from);
  };
  if (name == "first_moment") put(pointer<std::int8_t>(moment(name).codes));
  else put(pointer<std::uint8_t>(moment(name).codes));
}

void Optimizer::write_state(const std::string& name, std::int64_t first, std::span<const float> from) {
  std::ranges::copy(from, state(name, first));
  if (name != "weight" || !master_.defined()) return;
  const Piece& piece = piece_of(first);
  kernels::to_bfloat16(from.data(), pointer<kernels::BFloat16>(weights_of(piece)) + (first - piece.range.first),
                       static_cast<std::int64_t>(from.size()));
}

}  // namespace reckon
