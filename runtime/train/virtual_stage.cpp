#include "runtime/train/virtual_stage.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>

#include "plan/stage_sections.h"

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

VirtualStage::VirtualStage(const RankModel& model, const ParameterStore& store, GroupCalls* shard,
                           GradientAccumulation& gradients, std::int64_t chunk)
    : store_(store),
      shard_(shard),
      gradients_(gradients),
      buffers_are_whole_(!store.weights_are_shard() && !store.layout().by_section) {
  const Plan& plan = model.plan;
  const std::int64_t stage = model.coordinates.pipeline, index = chunk * plan.parallel.pipeline + stage;
  is_first_ = index == 0;
  is_last_ = index + 1 == plan.virtual_stages();

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
  const ChunkSections sections = stage_sections(plan, stage)[static_cast<std::size_t>(chunk)];
  for (const StageSection& section : sections)
    add(section.kind, section.recomputed ? plan.activations.recompute : Recompute::none, section.layer);
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
