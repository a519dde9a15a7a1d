#include "runtime/train/rank_state.h"

#include <algorithm>
#include <map>

#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/checkpoint/narrow_moments.h"
#include "runtime/checkpoint/safetensors_writer.h"

namespace reckon {
namespace {

constexpr std::int64_t kChunk = 1 << 18;  // elements copied at a time

/// The place in its whole tensor of a rank's slice of a parameter.
TensorRegion block_of(const LocalParameter& parameter) {
  const std::vector<std::int64_t>& shape = parameter.whole.shape;
  TensorRegion block;
  block.rows = parameter.local_shape[0];
  if (shape.size() > 1) {
    block.whole_columns = shape[1];
    block.columns = parameter.local_shape[1];
  }
  (parameter.whole.split == Split::columns ? block.column : block.row) = parameter.first;
  return block;
}

/// Elements of one parameter in one range of the flat buffer.
struct FlatPart {
  const LocalParameter* parameter;
  TensorRegion region;       // without padding
  std::int64_t place;        // of the region's first element in the flat buffer
  std::int64_t padding = 0;  // elements after the region that belong to no tensor
};

std::vector<FlatPart> flat_parts(const ParameterLayout& layout, const std::vector<FlatRange>& ranges) {
  std::vector<FlatPart> parts;
  for (const LocalParameter& parameter : layout.parameters)
    for (const FlatRange& range : ranges) {
      const std::int64_t first = std::max(range.first, parameter.offset);
      const std::int64_t last = std::min(range.end(), parameter.offset + parameter.elements());
      if (first >= last) continue;
      FlatPart part{&parameter, block_of(parameter), first};
      TensorRegion& region = part.region;
      region.rows = std::clamp<std::int64_t>(parameter.whole.shape[0] - region.row, 0, region.rows);
      region.first = first - parameter.offset;
      region.count = std::clamp<std::int64_t>(region.rows * region.columns - region.first, 0, last - first);
      part.padding = last - first - region.count;
      parts.push_back(part);
    }
  return parts;
}

}  // namespace

FileSeal write_rank_state(const std::filesystem::path& file, const ParameterLayout& layout,
                          const Optimizer& optimizer) {
  std::vector<FlatPart> parts = flat_parts(layout, optimizer.counted_ranges());
  std::erase_if(parts, [](const FlatPart& part) { return part.region.count == 0; });
  std::vector<StoredPart> stored;
  for (const FlatPart& part : parts)
    stored.push_back(
        {part.parameter->whole.name, part.parameter->whole.shape, part.region, optimizer.moment_blocks(part.place)});
  const std::vector<std::string> states = optimizer.state_names();
  SafetensorsWriter writer(file, rank_file_header(stored, states));
  std::vector<float> values;
  for (const std::string& state : states)
    for (const FlatPart& part : parts) {
      for (std::int64_t done = 0; done < part.region.count; done += kChunk) {
        values.resize(static_cast<std::size_t>(std::min(kChunk, part.region.count - done)));
        optimizer.read_state(state, part.place + done, values);
        writer.append(values);
      }
      if (state != "weight" && optimizer.moment_blocks(part.place).block > 0)
        writer.append(optimizer.read_scales(state, part.place, part.region.count));
    }
  return writer.finish();
}

namespace {

/// A state of one part, chunk by chunk.
class PartReader {
 public:
  PartReader(const WeightSource& source, Optimizer& optimizer) : source_(source), optimizer_(optimizer) {}

  void read(const std::string& state, const FlatPart& part) {
    const bool narrow = state != "weight" && optimizer_.moment_blocks(part.place).block > 0;
    const std::string& name = part.parameter->whole.name;
    for (std::int64_t done = 0; done < part.region.count; done += kChunk) {
      TensorRegion chunk = part.region;
      chunk.first += done;
      chunk.count = std::min(kChunk, part.region.count - done);
      fill(values_, state, name, chunk);
      if (narrow) {
        fill(codes_, code_state(state), name, chunk);
        fill(scales_, scale_state(state), name, chunk);
      }
      write(state, part.place + done, narrow);
    }
    if (part.padding == 0) return;
    for (std::vector<float>* numbers : {&values_, &codes_, &scales_})
      numbers->assign(static_cast<std::size_t>(part.padding), 0.0f);
    write(state, part.place + part.region.count, narrow);
  }

 private:
  void fill(std::vector<float>& numbers, const std::string& state, const std::string& name, const TensorRegion& chunk) {
    numbers.resize(static_cast<std::size_t>(chunk.count));
    source_.read(state, name, chunk, numbers);
  }
  void write(const std::string& state, std::int64_t place, bool narrow) {
    if (narrow) optimizer_.write_narrow(state, place, {values_, codes_, scales_});
    else optimizer_.write_state(state, place, values_);
  }

  const WeightSource& source_;
  Optimizer& optimizer_;
  std::vector<float> values_, codes_, scales_;
};

}  // namespace

void read_rank_state(const WeightSource& source, const ParameterLayout& layout, const std::vector<std::string>& states,
                     Optimizer& optimizer) {
  PartReader reader(source, optimizer);
  for (const FlatPart& part : flat_parts(layout, optimizer.kept_ranges()))
    for (const std::string& state : states) reader.read(state, part);
}

}  // namespace reckon
