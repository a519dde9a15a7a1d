// Where the layers of a searched plan lie: sections of every virtual stage, counted by kind and treatment. The same as
// plan/stage_sections, which lists them, for thousands of plans a millisecond.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/layer_ops.h"
#include "plan/stage_units.h"

namespace reckon {

/// Sections of one chunk of one pipeline stage.
struct ChunkLayers {
  std::int64_t embedding = 0, dense = 0, moe = 0, head = 0;
  std::int64_t again_dense = 0, again_moe = 0;  // of the layers, those that are recomputed: the first

  bool operator==(const ChunkLayers&) const = default;
};

/// Equal sections of a chunk.
struct LayerRun {
  Section section;
  bool again;  // recomputed
  std::int64_t count;
};
inline constexpr std::size_t kLayerRuns = 6;
/// In model order; some may be empty.
std::array<LayerRun, kLayerRuns> runs_of(const ChunkLayers& chunk);

class PlacedLayers {
 public:
  explicit PlacedLayers(const ModelSpec& model);

  /// Spreads the layers as evenly as possible, earlier virtual stages get the rest; none is recomputed.
  void place(std::int64_t pipeline, std::int64_t chunks);
  /// Recomputes the first `layers` layers of a stage.
  void recompute(std::int64_t stage, std::int64_t layers);

  std::int64_t pipeline() const { return pipeline_; }
  std::int64_t chunks() const { return chunks_; }
  const ChunkLayers& chunk(std::int64_t chunk, std::int64_t stage) const {
    return placed_[static_cast<std::size_t>(chunk * pipeline_ + stage)];
  }
  /// All chunks of a stage together.
  SectionCounts sections(std::int64_t stage) const;
  /// Recomputed layers of each stage.
  std::vector<std::int64_t> recomputed() const;
  /// Every virtual stage has as many layers.
  bool is_even() const { return layers_ % (pipeline_ * chunks_) == 0; }

 private:
  std::int64_t layers_;
  std::vector<std::int64_t> moe_before_;  // MoE layers before each layer
  std::int64_t pipeline_ = 0, chunks_ = 0;
  bool recomputes_ = false;
  std::vector<ChunkLayers> placed_;  // by virtual stage
};

}  // namespace reckon
