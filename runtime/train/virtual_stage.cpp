#include "runtime/train/virtual_stage.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "plan/pipeline_schedule.h"

namespace reckon {
namespace {

std::int64_t first_offset_of_layer(const ParameterLayout& layout, std::int64_t layer) {
  for (const LocalParameter& parameter : layout.parameters)
    if (parameter.layer == layer) return parameter.offset;
  return layout.elements;
}

/// Lists shared by layers of one kind and mode.
class ListCache {
 public:
  ListCache(const RankModel& model, int stage) : model_(model), stage_(stage) {}
  std::shared_ptr<const SectionLists> get(Section section, Recompute recompute) {
    auto& lists = lists_[{section, recompute}];
    if (!lists) lists = std::make_shared<const SectionLists>(model_, section, recompute, stage_);
    return lists;
  }

 private:
  const RankModel& model_;
  int stage_;
  std::map<std::pair<Section, Recompute>, std::shared_ptr<const SectionLists>> lists_;
};

}  // namespace

Recompute layer_recompute(const Plan& plan, std::int64_t stage, std::int64_t layer_of_stage) {
  const std::vector<std::int64_t>& layers = plan.activations.recompute_layers;
  if (plan.activations.recompute == Recompute::none || layers.empty()) return plan.activations.recompute;
  const auto index = std::min(static_cast<std::size_t>(stage), layers.size() - 1);
  return layer_of_stage < layers[index] ? plan.activations.recompute : Recompute::none;
}

VirtualStage::VirtualStage(const RankModel& model, const ParameterStore& store, std::int64_t chunk) {
  const Plan& plan = model.plan;
  const std::int64_t stage = model.coordinates.pipeline, index = chunk * plan.parallel.pipeline + stage;
  const std::vector<std::int64_t> layers = layers_per_virtual_stage(plan);
  is_first_ = index == 0;
  is_last_ = index + 1 == static_cast<std::int64_t>(layers.size());

  ListCache lists(model, static_cast<int>(stage));
  const auto add = [&](Section section, Recompute recompute, std::int64_t layer) {
    const auto list = lists.get(section, recompute);
    parts_.push_back({SectionRun(model, list, store.op_parameters(list->list, layer)), layer,
                      first_offset_of_layer(store.layout(), layer)});
  };
  const auto sum_before = [&](std::int64_t virtual_stage) {
    return std::accumulate(layers.begin(), layers.begin() + virtual_stage, std::int64_t{0});
  };
  std::int64_t layer_of_stage = 0;  // over this rank's chunks
  for (std::int64_t c = 0; c < chunk; ++c)
    layer_of_stage += layers[static_cast<std::size_t>(c * plan.parallel.pipeline + stage)];

  if (is_first_) add(Section::embedding, Recompute::none, kEmbeddingLayer);
  const std::int64_t first = sum_before(index), count = layers[static_cast<std::size_t>(index)];
  for (std::int64_t layer = first; layer < first + count; ++layer)
    add(plan.model.layer_is_moe(layer) ? Section::moe_layer : Section::dense_layer,
        layer_recompute(plan, stage, layer_of_stage++), layer);
  if (is_last_) add(Section::head, Recompute::none, kHeadLayer);
}

at::Tensor VirtualStage::forward(at::Tensor input, StageActivations& activations) const {
  activations.saved.resize(parts_.size());
  at::Tensor stream = is_first_ ? activations.batch.tokens : std::move(input);
  for (std::size_t i = 0; i < parts_.size(); ++i)
    stream = parts_[i].run.forward(std::move(stream), activations.batch, activations.saved[i]);
  return stream;
}

at::Tensor VirtualStage::backward(at::Tensor output_gradient, StageActivations& activations,
                                  const SectionDone& section_done) const {
  at::Tensor gradient = std::move(output_gradient);
  for (std::size_t i = parts_.size(); i-- > 0;) {
    gradient = parts_[i].run.backward(std::move(gradient), activations.batch, activations.saved[i]);
    section_done(parts_[i].layer, parts_[i].first_offset);
  }
  return gradient;
}

}  // namespace reckon
