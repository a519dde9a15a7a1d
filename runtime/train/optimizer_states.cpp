// The optimizer's states as checkpoints read and write them.
#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>

#include "plan/errors.h"
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

at::Tensor Optimizer::state(const std::string& name, std::int64_t first, std::int64_t count) const {
  if (name == "weight") {
    const Piece& piece = piece_of(first);
    const std::int64_t inside = first - piece.range.first;
    return master_.defined() ? master_.narrow(0, piece.place + inside, count)
                             : weights_of(piece).narrow(0, inside, count);
  }
  const Run& run = run_of(first);
  return moment(name).wide.narrow(0, run.place + (first - run.states.range.first), count);
}

BlockPlace Optimizer::moment_blocks(std::int64_t first) const {
  if (spec_.kind != OptimizerKind::adamw) return {};
  const Run& run = run_of(first);
  if (!run.states.narrow) return {};
  return {block_, (first - run.states.range.first) % block_};
}

void Optimizer::read_state(const std::string& name, std::int64_t first, std::span<float> into) const {
  if (name == "weight" || !run_of(first).states.narrow) {
    const at::Tensor values = state(name, first, static_cast<std::int64_t>(into.size())).cpu();
    std::copy_n(pointer<const float>(values), into.size(), into.begin());
    return;
  }
  const Run& run = run_of(first);
  const at::Tensor stored =
      moment(name)
          .codes.narrow(0, run.place + (first - run.states.range.first), static_cast<std::int64_t>(into.size()))
          .cpu();
  const auto* codes = pointer<std::uint8_t>(stored);
  const bool is_signed = name == "first_moment";
  for (std::size_t i = 0; i < into.size(); ++i)
    into[i] = is_signed ? static_cast<float>(static_cast<std::int8_t>(codes[i])) : static_cast<float>(codes[i]);
}

std::vector<float> Optimizer::read_scales(const std::string& name, std::int64_t first, std::int64_t count) const {
  const Run& run = run_of(first);
  const std::int64_t inside = first - run.states.range.first;
  const std::int64_t blocks = moment_blocks(first).blocks(count);
  const at::Tensor stored = moment(name).scales.narrow(0, run.block + inside / block_, blocks).cpu();
  return {pointer<float>(stored), pointer<float>(stored) + blocks};
}

/// The blocks that are touched are changed in copies on the host where they lie on a device.
void Optimizer::write_narrow(const std::string& name, std::int64_t first, const ReadMoments& from) {
  const Run& run = run_of(first);
  const std::int64_t inside = first - run.states.range.first, written = static_cast<std::int64_t>(from.values.size());
  const std::int64_t first_block = inside / block_, blocks = (inside + written + block_ - 1) / block_ - first_block;
  const std::int64_t start = first_block * block_;
  const at::Tensor own_codes =
      moment(name).codes.narrow(0, run.place + start, std::min(blocks * block_, run.states.range.count - start));
  const at::Tensor own_scales = moment(name).scales.narrow(0, run.block + first_block, blocks);
  at::Tensor codes = own_codes.cpu(), scales = own_scales.cpu();
  const auto put = [&](auto* code) {
    put_moments({std::span(code, static_cast<std::size_t>(codes.numel())),
                 std::span(pointer<float>(scales), static_cast<std::size_t>(blocks)), block_},
                inside - start, from);
  };
  if (name == "first_moment") put(pointer<std::int8_t>(codes));
  else put(pointer<std::uint8_t>(codes));
  if (own_codes.data_ptr() == codes.data_ptr()) return;
  own_codes.copy_(codes);
  own_scales.copy_(scales);
}

void Optimizer::write_state(const std::string& name, std::int64_t first, std::span<const float> from) {
  const auto count = static_cast<std::int64_t>(from.size());
  const at::Tensor values = at::from_blob(const_cast<float*>(from.data()), {count}, at::kFloat);  // only read
  state(name, first, count).copy_(values);
  if (name != "weight" || !master_.defined()) return;
  const Piece& piece = piece_of(first);
  weights_of(piece).narrow(0, first - piece.range.first, count).copy_(values);
}

}  // namespace reckon
