// One checkpoint opened for reading: tensors by name, however they were cut when it was written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/checkpoint/checkpoint_manifest.h"
#include "runtime/checkpoint/narrow_moments.h"
#include "runtime/checkpoint/safetensors_file.h"
#include "runtime/checkpoint/weight_source.h"

namespace reckon {

/// A stored part of a tensor of one dimension or two; `whole_shape` is the tensor's own.
struct StoredPart {
  std::string parameter;
  std::vector<std::int64_t> whole_shape;
  TensorRegion region;
  BlockPlace blocks = {};  // of its moments, where they are in 8 bits
};

/// Header of a rank's file: for every part one tensor "STATE/PARAMETER" a state (for moments in 8 bits two, see
/// narrow_moments.h), and under "PARAMETER" in the metadata the part's place. A second part of a parameter has the name
/// "PARAMETER@1", and so on.
SafetensorsHeader rank_file_header(const std::vector<StoredPart>& parts, const std::vector<std::string>& states);

class CheckpointReader final : public WeightSource {
 public:
  /// Opens every file and compares sizes. Throws ConfigError naming the file that is missing, of another size or not
  /// sound.
  explicit CheckpointReader(const std::filesystem::path& checkpoint);

  const CheckpointManifest& manifest() const { return manifest_; }
  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path plan_file() const { return folder_ / "plan.yaml"; }
  bool holds(const std::string& state) const;
  /// Names and whole shapes of the tensors it holds.
  const std::map<std::string, std::vector<std::int64_t>>& shapes() const { return shapes_; }

  /// Reads files `first`, `first` + `stride`, ... whole and compares their checksums, so that ranks share the work.
  /// Throws ConfigError naming the file that was altered.
  void verify(std::size_t first = 0, std::size_t stride = 1) const;

  /// Moments in 8 bits are read decoded, and with code_state and scale_state as they are: zeros where FP32 is stored.
  void read(const std::string& state, const std::string& name, const TensorRegion& region,
            std::span<float> into) const override;

 private:
  struct Place {
    const SafetensorsFile* file;
    const StoredTensor* tensor;
    std::vector<TensorRun> runs;
    BlockPlace blocks;
    const StoredTensor* scales;  // null without blocks
  };
  enum class Aspect { value, code, scale };
  /// Elements of a stored part from `first` on.
  static void read_part(const Place& place, std::string_view state, Aspect aspect, std::int64_t first,
                        std::span<float> into);
  void add_file(const std::string& name);
  void add_tensor(const SafetensorsFile& file, const StoredTensor& tensor);

  std::filesystem::path folder_;
  CheckpointManifest manifest_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, std::vector<Place>> places_;  // by "STATE/PARAMETER"
  std::map<std::string, std::vector<std::int64_t>> shapes_;
};

}  // namespace reckon
