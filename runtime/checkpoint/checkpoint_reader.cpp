#include "runtime/checkpoint/checkpoint_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/errors.h"
#include "runtime/checkpoint/json_text.h"

namespace reckon {
namespace {

constexpr const char* kEnding = ".safetensors";
constexpr char kPartMark = '@';
constexpr std::int64_t kLargestBlock = 1 << 16;
constexpr std::size_t kMostRuns = std::size_t{1} << 26;  // a region with more is no part that was ever written

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw ConfigError({{what, file, 0, 0, {}}});
}

std::string place_text(const StoredPart& part) {
  const TensorRegion& r = part.region;
  Json place = {part.whole_shape, {r.row, r.rows, r.column, r.columns}, r.first};
  if (part.blocks.block > 0) place.push_back({part.blocks.block, part.blocks.phase});
  return place.dump();
}

/// Whether the region lies inside a tensor of that shape; no sum or product overflows.
bool lies_inside(const TensorRegion& r, const std::vector<std::int64_t>& shape) {
  if (shape.empty() || shape.size() > 2) return false;
  for (const std::int64_t number : {r.row, r.rows, r.column, r.columns, r.first, r.count, shape[0], shape.back()})
    if (number < 0 || number > std::int64_t{1} << 40) return false;
  if (r.columns < 1 || r.row + r.rows > shape[0] || r.column + r.columns > r.whole_columns) return false;
  const bool short_enough = r.columns == r.whole_columns || static_cast<std::size_t>(r.rows) < kMostRuns;
  return short_enough && static_cast<double>(r.rows) * static_cast<double>(r.columns) < 9e18 &&
         r.first + r.count <= r.rows * r.columns;
}

/// The place that metadata gives, for a stored tensor of `count` elements.
StoredPart read_place(const std::string& parameter, const std::string& text, std::int64_t count,
                      const std::string& file) {
  const auto damaged = [&] { refuse(file, fmt::format("gives no sound place for {}", shown_name(parameter))); };
  StoredPart part{parameter, {}, {}};
  const Json json = parse_json(text, file);
  try {
    part.whole_shape = json.at(0).get<std::vector<std::int64_t>>();
    const auto block = json.at(1).get<std::vector<std::int64_t>>();
    if (block.size() != 4) damaged();
    part.region = {part.whole_shape.size() == 2 ? part.whole_shape[1] : 1,
                   block[0],
                   block[2],
                   block[1],
                   block[3],
                   json.at(2).get<std::int64_t>(),
                   count};
    if (json.size() > 3) part.blocks = {json.at(3).at(0).get<std::int64_t>(), json.at(3).at(1).get<std::int64_t>()};
  } catch (const Json::exception&) {
    damaged();
  }
  const BlockPlace& blocks = part.blocks;
  if (blocks.block < 0 || blocks.block > kLargestBlock || blocks.phase < 0 ||
      blocks.phase >= std::max<std::int64_t>(1, blocks.block))
    damaged();
  if (!lies_inside(part.region, part.whole_shape)) damaged();
  return part;
}

}  // namespace

SafetensorsHeader rank_file_header(const std::vector<StoredPart>& parts, const std::vector<std::string>& states) {
  SafetensorsHeader header;
  std::vector<std::string> names;
  std::map<std::string, int> seen;
  for (const StoredPart& part : parts) {
    const int earlier = seen[part.parameter]++;
    names.push_back(earlier == 0 ? part.parameter : fmt::format("{}{}{}", part.parameter, kPartMark, earlier));
    header.metadata[names.back()] = place_text(part);
  }
  for (const std::string& state : states)
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::int64_t count = parts[i].region.count;
      const bool narrow = parts[i].blocks.block > 0 && state != "weight";
      header.tensors.push_back({state + "/" + names[i], narrow ? std::string(code_type(state)) : "F32", {count}, 0, 0});
      if (narrow)
        header.tensors.push_back({scale_state(state) + "/" + names[i], "F32", {parts[i].blocks.blocks(count)}, 0, 0});
    }
  return header;
}

CheckpointReader::CheckpointReader(const std::filesystem::path& checkpoint)
    : folder_(checkpoint), manifest_(read_manifest(checkpoint)) {
  for (const auto& [name, seal] : manifest_.files) {
    const ReadOnlyFile file(folder_ / name);
    if (file.size() != seal.bytes)
      refuse(file.name(), fmt::format("has {} bytes, but the checkpoint was written with {}", file.size(), seal.bytes));
    if (name.ends_with(kEnding)) add_file(name);
  }
}

void CheckpointReader::add_file(const std::string& name) {
  files_.push_back(std::make_unique<SafetensorsFile>(folder_ / name));
  for (const StoredTensor& tensor : files_.back()->header().tensors) add_tensor(*files_.back(), tensor);
}

void CheckpointReader::add_tensor(const SafetensorsFile& file, const StoredTensor& tensor) {
  const auto slash = tensor.name.find('/');
  const std::string name = slash == std::string::npos ? "" : tensor.name.substr(slash + 1);
  const std::string state = tensor.name.substr(0, name.empty() ? 0 : slash);
  if (state.ends_with("_scale")) return;  // belongs to the codes, which ask for it
  const auto place = file.header().metadata.find(name);
  if (place == file.header().metadata.end())
    refuse(file.name(), fmt::format("gives no place for {}", shown_name(tensor.name)));
  const std::string parameter = name.substr(0, name.find(kPartMark));
  const StoredPart part = read_place(parameter, place->second, tensor.elements(), file.name());
  const auto [known, is_new] = shapes_.try_emplace(parameter, part.whole_shape);
  if (!is_new && known->second != part.whole_shape)
    refuse(file.name(), fmt::format("gives {} another shape than {}; one of them was altered", shown_name(parameter),
                                    files_.front()->name()));
  const bool narrow = !is_floating_type(tensor.type);
  const StoredTensor* scales = narrow ? file.header().find(scale_state(state) + "/" + name) : nullptr;
  if (narrow && tensor.type != code_type(state))
    refuse(file.name(), fmt::format("has {} of type {}", shown_name(tensor.name), tensor.type));
  if (narrow && (part.blocks.block == 0 || scales == nullptr || scales->type != "F32" ||
                 scales->elements() != part.blocks.blocks(part.region.count)))
    refuse(file.name(), fmt::format("gives no sound scales for {}", shown_name(tensor.name)));
  places_[state + "/" + parameter].push_back({&file, &tensor, runs_of(part.region), part.blocks, scales});
}

void CheckpointReader::read_part(const Place& place, std::string_view state, Aspect aspect, std::int64_t first,
                                 std::span<float> into) {
  if (place.scales == nullptr) {
    if (aspect == Aspect::value) place.file->read(*place.tensor, first, into);
    else std::ranges::fill(into, 0.0f);
    return;
  }
  if (aspect == Aspect::code) return place.file->read(*place.tensor, first, into);
  const std::int64_t block = place.blocks.block_of(first);
  std::vector<float> scales(static_cast<std::size_t>(
      into.empty() ? 0 : place.blocks.block_of(first + static_cast<std::int64_t>(into.size()) - 1) - block + 1));
  place.file->read(*place.scales, block, scales);
  std::vector<float> expanded(into.size());
  for (std::size_t i = 0; i < into.size(); ++i)
    expanded[i] = scales[static_cast<std::size_t>(place.blocks.block_of(first + static_cast<std::int64_t>(i)) - block)];
  if (aspect == Aspect::scale) {
    std::ranges::copy(expanded, into.begin());
    return;
  }
  std::vector<float> codes(into.size());
  place.file->read(*place.tensor, first, codes);
  decode_moments(state, codes, expanded, into);
}

bool CheckpointReader::holds(const std::string& state) const {
  return std::ranges::find(manifest_.states, state) != manifest_.states.end();
}

void CheckpointReader::verify(std::size_t first, std::size_t stride) const {
  std::size_t index = 0;
  for (const auto& [name, seal] : manifest_.files) {
    const std::filesystem::path file = folder_ / name;
    if (index++ % stride == first && seal_of(file) != seal)
      refuse(file.string(), "was altered after it was written: its checksum does not match the checkpoint's manifest");
  }
}

void CheckpointReader::read(const std::string& state, const std::string& name, const TensorRegion& region,
                            std::span<float> into) const {
  Aspect aspect = Aspect::value;
  std::string stored = state;
  for (const auto& [ending, meant] : {std::pair{code_state(""), Aspect::code}, {scale_state(""), Aspect::scale}})
    if (state.ends_with(ending)) {
      stored = state.substr(0, state.size() - ending.size());
      aspect = meant;
    }
  const auto found = places_.find(stored + "/" + name);
  const std::vector<TensorRun> wanted = runs_of(region);
  std::int64_t filled = 0;
  for (std::size_t i = 0; found != places_.end() && i < found->second.size(); ++i) {
    const Place& place = found->second[i];
    for (const SharedRun& run : shared_runs(place.runs, wanted)) {
      read_part(place, stored, aspect, run.in_a,
                into.subspan(static_cast<std::size_t>(run.in_b), static_cast<std::size_t>(run.count)));
      filled += run.count;
    }
  }
  if (filled != region.count)
    refuse(folder_.string(), fmt::format("holds {} of {} elements of the {} of {} that are needed", filled,
                                         region.count, state, shown_name(name)));
}

}  // namespace reckon
