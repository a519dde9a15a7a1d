#include "cost_model/placed_layers.h"

#include <algorithm>

namespace reckon {

namespace {

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

std::array<LayerRun, kLayerRuns> runs_of(const ChunkLayers& chunk) {
  return {LayerRun{Section::embedding, false, chunk.embedding},
          LayerRun{Section::dense_layer, true, chunk.again_dense},
          LayerRun{Section::dense_layer, false, chunk.dense - chunk.again_dense},
          LayerRun{Section::moe_layer, true, chunk.again_moe},
          LayerRun{Section::moe_layer, false, chunk.moe - chunk.again_moe},
          LayerRun{Section::head, false, chunk.head}};
}

PlacedLayers::PlacedLayers(const ModelSpec& model) : layers_(model.layers), moe_before_{0} {
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    moe_before_.push_back(moe_before_.back() + (model.layer_is_moe(layer) ? 1 : 0));
}

void PlacedLayers::place(std::int64_t pipeline, std::int64_t chunks) {
  if (pipeline == pipeline_ && chunks == chunks_) {
    for (ChunkLayers& chunk : placed_) {
      if (!recomputes_) break;
      chunk.again_dense = chunk.again_moe = 0;
    }
    recomputes_ = false;
    return;
  }
  pipeline_ = pipeline;
  chunks_ = chunks;
  recomputes_ = false;
  const std::int64_t stages = pipeline * chunks;
  placed_.assign(at(stages), {});
  std::int64_t first = 0;
  for (std::int64_t i = 0; i < stages; ++i) {
    const std::int64_t count = layers_ / stages + (i < layers_ % stages ? 1 : 0);
    ChunkLayers& chunk = placed_[at(i)];
    chunk.moe = moe_before_[at(first + count)] - moe_before_[at(first)];
    chunk.dense = count - chunk.moe;
    first += count;
  }
  placed_.front().embedding = 1;
  placed_.back().head = 1;
}

void PlacedLayers::recompute(std::int64_t stage, std::int64_t layers) {
  recomputes_ = true;
  for (std::int64_t c = 0; c < chunks_; ++c) {
    ChunkLayers& here = placed_[at(c * pipeline_ + stage)];
    here.again_dense = std::min(layers, here.dense);
    layers -= here.again_dense;
    here.again_moe = std::min(layers, here.moe);
    layers -= here.again_moe;
  }
}

SectionCounts PlacedLayers::sections(std::int64_t stage) const {
  SectionCounts sum;
  for (std::int64_t c = 0; c < chunks_; ++c) {
    const ChunkLayers& one = chunk(c, stage);
    sum.embedding += one.embedding;
    sum.dense += one.dense;
    sum.moe += one.moe;
    sum.head += one.head;
  }
  return sum;
}

std::vector<std::int64_t> PlacedLayers::recomputed() const {
  std::vector<std::int64_t> layers(at(pipeline_), 0);
  for (std::size_t i = 0; i < placed_.size(); ++i)
    layers[i % layers.size()] += placed_[i].again_dense + placed_[i].again_moe;
  return layers;
}

}  // namespace reckon
