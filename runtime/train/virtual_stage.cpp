#include "runtime/train/virtual_stage.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "plan/pipeline_schedule.h"

namespace reckon {
namespace {

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

VirtualStage::VirtualStage(const RankModel& model, const ParameterStore& store, GroupCalls* shard,
                           GradientAccumulation& gradients, std::int64_t chunk)
    : store_(store),
      shard_(shard),
      gradients_(gradients),
      buffers_are_whole_(!store.weights_are_shard() && !store.layout().by_section) {
  const Plan& plan = model.plan;
  const std::int64_t stage = model.coordinates.pipeline, index = chunk * plan.parallel.pipeline + stage;
  const std::vector<std::int64_t> layers = layers_per_virtual_stage(plan);
  is_first_ = index == 0;
  is_last_ = index + 1 == static_cast<std::int64_t>(layers.size());

  ListCache lists(model, static_cast<int>(stage));
  const auto add = [&](Section section, Recompute recompute, std::int64_t layer) {
    const auto list = lists.get(section, recompute);
    std::vector<OpPlaces> places = store.op_places(list->list, layer);
    SectionUnits units = section_units(store.layout(), layer, places);
    parts_.push_back({SectionRunner(model, list, layer), std::move(places), std::move(units)});
    if (!buffers_are_whole_) return;
    Part& part = parts_.back();
    part.run.bind(op_parameters(part.places, weights_of(part).windows(), gradients_.open(part.units)));
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

at::Tensor VirtualStage::forward(at::Tensor input, StageActivations& activations) {
  activations.saved.resize(parts_.size());
  at::Tensor stream = is_first_ ? activations.batch.tokens : std::move(input);
  WholeWeights ahead = weights_of(parts_.front());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    WholeWeights weights = std::move(ahead);
    if (i + 1 < parts_.size()) ahead = weights_of(parts_[i + 1]);
    if (!buffers_are_whole_) parts_[i].run.bind(op_parameters(parts_[i].places, weights.windows(), {}));
    stream = parts_[i].run.forward(std::move(stream), activations.batch, activations.saved[i]);
    if (!buffers_are_whole_) parts_[i].run.bind({});
  }
  return stream;
}

at::Tensor VirtualStage::backward(at::Tensor output_gradient, StageActivations& activations, bool last_micro_batch) {
  at::Tensor gradient = std::move(output_gradient);
  WholeWeights ahead = weights_of(parts_.back());
  for (std::size_t i = parts_.size(); i-- > 0;) {
    Part& part = parts_[i];
    {
      WholeWeights weights = std::move(ahead);
      if (i > 0) ahead = weights_of(parts_[i - 1]);
      if (!buffers_are_whole_)
        part.run.bind(op_parameters(part.places, weights.windows(), gradients_.open(part.units)));
      gradient = part.run.backward(std::move(gradient), activations.batch, activations.saved[i]);
      if (!buffers_are_whole_) part.run.bind({});
    }
    gradients_.close(part.units, last_micro_batch);
  }
  gradients_.end_backward();
  return gradient;
}

}  // namespace reckon
