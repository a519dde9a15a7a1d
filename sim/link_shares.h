// Keeps max-min fair shares up to date while flows come and go. Only flows that a change can reach over contended links
// are solved again.
#pragma once

#include <cstdint>
#include <vector>

namespace reckon {

class LinkShares {
 public:
  /// `capacities` in flows at full speed. `flows`: how many can exist, named 0 .. flows-1.
  LinkShares(const std::vector<double>& capacities, std::size_t flows);

  /// `links` must stay alive until the flow is removed.
  void add(std::int32_t flow, const std::vector<std::int32_t>& links);
  void remove(std::int32_t flow);

  /// Solves what changed since the last call and returns the flows whose share is new.
  const std::vector<std::int32_t>& settle();
  /// Share of full speed, in (0, 1].
  double share(std::int32_t flow) const { return shares_[static_cast<std::size_t>(flow)]; }

 private:
  bool is_contended(std::int32_t link) const;
  void gather_component(std::int32_t flow);
  void solve_component();

  const std::vector<double>& capacities_;
  std::vector<std::vector<std::int32_t>> flows_on_link_;
  std::vector<const std::vector<std::int32_t>*> links_of_flow_;  // null: not there
  std::vector<double> shares_;
  std::vector<std::uint32_t> flow_seen_, link_seen_;  // stamp of the settling that met it
  std::vector<std::int32_t> link_index_;              // place in the component, where seen
  std::uint32_t stamp_ = 0;
  std::vector<std::int32_t> touched_, component_flows_, component_links_, changed_;
};

}  // namespace reckon
