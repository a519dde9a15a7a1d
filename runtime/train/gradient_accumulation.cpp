#include "runtime/train/gradient_accumulation.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "runtime/train/bucket_gradients.h"
#include "runtime/train/section_gradients.h"

namespace reckon {

std::vector<FlatRange> SectionUnits::all() const {
  std::vector<FlatRange> units = held;
  units.insert(units.end(), borrowed.begin(), borrowed.end());
  return units;
}

std::vector<std::int64_t> unit_sizes(const ParameterLayout& layout) {
  std::vector<std::int64_t> sizes;
  for (const FlatRange& unit : layout.units) sizes.push_back(unit.count);
  return sizes;
}

SectionUnits section_units(const ParameterLayout& layout, std::int64_t layer, const std::vector<OpPlaces>& places) {
  SectionUnits section;
  section.first_offset = layout.elements;
  const auto add = [](std::vector<FlatRange>& units, const FlatRange& unit) {
    if (std::find(units.begin(), units.end(), unit) == units.end()) units.push_back(unit);
  };
  for (const LocalParameter& parameter : layout.parameters) {
    if (parameter.layer != layer) continue;
    section.first_offset = std::min(section.first_offset, parameter.offset);
    add(section.held, layout.units[layout.unit_of(parameter.offset)]);
  }
  if (!layout.by_section) return section;
  for (const OpPlaces& place : places) {
    if (place.weight.shape.empty()) continue;
    const FlatRange& unit = layout.units[layout.unit_of(place.weight.offset)];
    if (std::find(section.held.begin(), section.held.end(), unit) == section.held.end()) add(section.borrowed, unit);
  }
  return section;
}

std::unique_ptr<GradientAccumulation> make_gradient_accumulation(const Plan& plan, ParameterStore& store,
                                                                 const RankGroups& groups, StepTimer& timer) {
  if (store.layout().by_section) return std::make_unique<SectionGradients>(plan, store, groups, timer);
  return std::make_unique<BucketGradients>(plan, store, groups, timer);
}

}  // namespace reckon
