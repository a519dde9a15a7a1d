#include "sim/link_shares.h"

#include <cstddef>

#include "sim/fair_share.h"

namespace reckon {
namespace {

std::size_t at(std::int32_t index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

LinkShares::LinkShares(const std::vector<double>& capacities, std::size_t flows)
    : capacities_(capacities),
      flows_on_link_(capacities.size()),
      links_of_flow_(flows, nullptr),
      shares_(flows, 0.0),
      flow_seen_(flows, 0),
      link_seen_(capacities.size(), 0),
      link_index_(capacities.size(), 0) {}

void LinkShares::add(std::int32_t flow, const std::vector<std::int32_t>& links) {
  links_of_flow_[at(flow)] = &links;
  shares_[at(flow)] = 0.0;
  for (const std::int32_t link : links) flows_on_link_[at(link)].push_back(flow);
  touched_.push_back(flow);
}

void LinkShares::remove(std::int32_t flow) {
  for (const std::int32_t link : *links_of_flow_[at(flow)]) {
    std::erase(flows_on_link_[at(link)], flow);
    touched_.insert(touched_.end(), flows_on_link_[at(link)].begin(), flows_on_link_[at(link)].end());
  }
  links_of_flow_[at(flow)] = nullptr;
}

bool LinkShares::is_contended(std::int32_t link) const {
  return static_cast<double>(flows_on_link_[at(link)].size()) > capacities_[at(link)];
}

const std::vector<std::int32_t>& LinkShares::settle() {
  changed_.clear();
  ++stamp_;
  for (const std::int32_t flow : touched_) {
    if (links_of_flow_[at(flow)] == nullptr || flow_seen_[at(flow)] == stamp_) continue;
    gather_component(flow);
    solve_component();
  }
  touched_.clear();
  return changed_;
}

/// All flows that share contended links with `flow`, directly or over others.
void LinkShares::gather_component(std::int32_t flow) {
  component_flows_.assign(1, flow);
  component_links_.clear();
  flow_seen_[at(flow)] = stamp_;
  for (std::size_t i = 0; i < component_flows_.size(); ++i) {
    for (const std::int32_t link : *links_of_flow_[at(component_flows_[i])]) {
      if (link_seen_[at(link)] == stamp_ || !is_contended(link)) continue;
      link_seen_[at(link)] = stamp_;
      link_index_[at(link)] = static_cast<std::int32_t>(component_links_.size());
      component_links_.push_back(link);
      for (const std::int32_t other : flows_on_link_[at(link)]) {
        if (flow_seen_[at(other)] == stamp_) continue;
        flow_seen_[at(other)] = stamp_;
        component_flows_.push_back(other);
      }
    }
  }
}

void LinkShares::solve_component() {
  std::vector<double> shares(component_flows_.size(), 1.0);
  if (!component_links_.empty()) {
    std::vector<Flow> flows(component_flows_.size());
    for (std::size_t i = 0; i < flows.size(); ++i)
      for (const std::int32_t link : *links_of_flow_[at(component_flows_[i])])
        if (link_seen_[at(link)] == stamp_) flows[i].links.push_back(link_index_[at(link)]);
    std::vector<double> capacities;
    for (const std::int32_t link : component_links_) capacities.push_back(capacities_[at(link)]);
    shares = fair_share(flows, capacities);
  }
  for (std::size_t i = 0; i < shares.size(); ++i) {
    double& share = shares_[at(component_flows_[i])];
    if (share == shares[i]) continue;
    share = shares[i];
    changed_.push_back(component_flows_[i]);
  }
}

}  // namespace reckon
