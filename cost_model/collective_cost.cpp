#include "cost_model/collective_cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace reckon {

namespace {

// NCCL's protocols: base latency, the latency of a step in units of the link's latency, and the share of the link's
// bandwidth. The tuning table has 6.6 / 14 / 8.4 us of base and steps of 0.6 / 1.9 / 3.4 us on NVLink, 1.0 / 2.5 / 5.7
// us on PCIe and 2.7 / 4.0 / 14 us on a network, for LL, LL128 and Simple.
struct Protocol {
  double base_us, step_share, bandwidth_share;
  bool needs_switch;
};
constexpr std::array<Protocol, 3> kProtocols{{{6.6, 0.4, 0.4, false}, {14.0, 1.0, 0.92, true}, {8.4, 2.0, 1.0, false}}};

// Share of the wire rate that large messages reach, from measured asymptotes of nccl-tests on 8 GPUs: A100 0.77, H100
// ring 0.80, B200 0.78 for all-reduce; 0.71-0.74 for gather and scatter; 0.63-0.70 for all-to-all. PCIe boxes without
// bridges: 0.70 for a pair, 0.42 for more ranks (A100 PCIe).
constexpr double kNetworkShare = 0.94;  // usable part of a port's line rate, 0.92-0.96 observed

double intra_node_share(const HardwareSpec& hardware, Collective collective, std::int64_t ranks) {
  if (!hardware.intra_node.switched) return ranks <= 2 ? 0.70 : 0.42;
  switch (collective) {
    case Collective::all_reduce: return 0.78;
    case Collective::all_to_all: return 0.67;
    case Collective::send_receive: return 0.80;
    default: return 0.73;
  }
}

/// Bytes on the wire of each rank per byte of the tensor.
double wire_share(Collective collective, std::int64_t ranks) {
  return bytes_sent_per_rank(collective, Bytes(1'000'000), static_cast<int>(ranks)) * 1e-6;
}

/// Latency of a ring or tree over the layout, in steps inside a node and between nodes.
struct Steps {
  double intra, inter;
};

/// A ring that crosses nodes waits for the network at the steps between nodes, and in part at the others: chunks follow
/// each other, so a slow step holds up the ones behind it. (All-gathers of one size over 2 to 64 nodes of 8 H100 take
/// time in proportion to n - 1 on one published cluster, hardly more than their bandwidth says on others.)
constexpr double kLockstep = 0.4;

Steps ring_steps(Collective collective, const GroupLayout& layout) {
  if (collective == Collective::all_to_all || collective == Collective::send_receive)
    return layout.nodes > 1 ? Steps{0.0, 1.0} : Steps{1.0, 0.0};
  const double passes = collective == Collective::all_reduce ? 2.0 : 1.0;
  const auto ranks = static_cast<double>(layout.ranks), nodes = static_cast<double>(layout.nodes);
  if (layout.nodes == 1) return {passes * (ranks - 1.0), 0.0};
  return {passes * (1.0 - kLockstep) * (ranks - nodes), passes * (nodes - 1.0 + kLockstep * (ranks - nodes))};
}

Steps tree_steps(const GroupLayout& layout) {
  return {2.0 * static_cast<double>(layout.ranks_per_node - 1), 2.0 * std::log2(static_cast<double>(layout.nodes))};
}

/// Bus bandwidth of a ring: the slower of the fabric inside the node and the group's share of the network ports.
double ring_bandwidth(const HardwareSpec& hardware, Collective collective, const GroupLayout& layout) {
  const double intra =
      hardware.intra_node.bandwidth.value * intra_node_share(hardware, collective, layout.ranks_per_node);
  if (layout.nodes == 1) return intra;
  const double ports = std::min(static_cast<double>(layout.ranks_per_node),
                                static_cast<double>(hardware.devices_per_node) / static_cast<double>(layout.siblings));
  const double network = hardware.inter_node.bandwidth.value * kNetworkShare * std::max(ports, 1e-3);
  return layout.ranks_per_node == 1 ? network : std::min(intra, network);
}

/// All-to-all: what leaves the node goes through each rank's own port, the rest over the node's fabric, both at once.
double all_to_all_transfer(const HardwareSpec& hardware, const GroupLayout& layout, double bytes) {
  const auto ranks = static_cast<double>(layout.ranks);
  const auto inside = static_cast<double>(layout.ranks_per_node);
  const double intra =
      bytes * (inside - 1.0) / ranks /
      (hardware.intra_node.bandwidth.value * intra_node_share(hardware, Collective::all_to_all, layout.ranks_per_node));
  if (layout.nodes == 1) return intra;
  return std::max(intra, bytes * (ranks - inside) / ranks / (hardware.inter_node.bandwidth.value * kNetworkShare));
}

double latency_seconds(const HardwareSpec& hardware, const Protocol& protocol, Steps steps) {
  return protocol.base_us * 1e-6 + protocol.step_share * (steps.intra * hardware.intra_node.latency.value +
                                                          steps.inter * hardware.inter_node.latency.value);
}

double prior_seconds(const HardwareSpec& hardware, Collective collective, const GroupLayout& layout, double bytes) {
  const double transfer = collective == Collective::all_to_all ? all_to_all_transfer(hardware, layout, bytes)
                                                               : bytes * wire_share(collective, layout.ranks) /
                                                                     ring_bandwidth(hardware, collective, layout);
  double best = std::numeric_limits<double>::infinity();
  for (const Protocol& protocol : kProtocols) {
    if (protocol.needs_switch && !hardware.intra_node.switched) continue;
    const double moved = transfer / protocol.bandwidth_share;
    best = std::min(best, latency_seconds(hardware, protocol, ring_steps(collective, layout)) + moved);
    if (collective == Collective::all_reduce && layout.nodes > 1)  // trees reach 0.92 of the ring's bandwidth
      best = std::min(best, latency_seconds(hardware, protocol, tree_steps(layout)) + moved / 0.92);
  }
  return best;
}

/// Inside a node also one that was measured beside another number of sibling groups.
const CollectiveFit* exact_fit(const HardwareSpec& hardware, Collective collective, const GroupLayout& layout) {
  const CollectiveFit* other = nullptr;
  for (const CollectiveFit& fit : hardware.time.collectives) {
    if (fit.collective != collective || fit.ranks_per_node != layout.ranks_per_node || fit.nodes != layout.nodes)
      continue;
    if (fit.siblings == layout.siblings) return &fit;
    if (layout.nodes == 1) other = &fit;
  }
  return other;
}

/// The fit inside a node whose group size is nearest by ratio.
const CollectiveFit* nearest_fit(const HardwareSpec& hardware, Collective collective, const GroupLayout& layout) {
  if (layout.nodes > 1) return nullptr;
  const CollectiveFit* nearest = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const CollectiveFit& fit : hardware.time.collectives) {
    if (fit.collective != collective || fit.nodes != 1 || fit.ranks_per_node < 2) continue;
    const double distance =
        std::abs(std::log(static_cast<double>(fit.ranks_per_node) / static_cast<double>(layout.ranks)));
    if (distance < least) {
      least = distance;
      nearest = &fit;
    }
  }
  return nearest;
}

double fitted_seconds(const CollectiveFit& fit, double bytes) {
  return fit.alpha.value + fit.gamma_seconds_per_sqrt_byte * std::sqrt(bytes) + bytes / fit.bandwidth.value;
}

/// The fit of another group size: equal bus bandwidth, latency in proportion to the prior's.
double transferred_seconds(const HardwareSpec& hardware, const CollectiveFit& fit, const GroupLayout& layout,
                           double bytes) {
  const GroupLayout measured{fit.ranks_per_node, fit.ranks_per_node, 1, 1};
  const double latency =
      prior_seconds(hardware, fit.collective, layout, 0.0) / prior_seconds(hardware, fit.collective, measured, 0.0);
  const double wire = wire_share(fit.collective, layout.ranks) / wire_share(fit.collective, measured.ranks);
  return fit.alpha.value * latency + fit.gamma_seconds_per_sqrt_byte * std::sqrt(bytes) +
         bytes * wire / fit.bandwidth.value;
}

}  // namespace

CostEstimate collective_cost(const HardwareSpec& hardware, Collective collective, const GroupLayout& layout,
                             Bytes bytes) {
  if (layout.ranks <= 1 || bytes.value <= 0) return {Seconds(0.0), 0.0, Provenance::calibrated};
  const auto size = static_cast<double>(bytes.value);
  if (const CollectiveFit* fit = exact_fit(hardware, collective, layout))
    return {Seconds(fitted_seconds(*fit, size)), fit->relative_error, fit->provenance};
  if (const CollectiveFit* fit = nearest_fit(hardware, collective, layout))
    return {Seconds(transferred_seconds(hardware, *fit, layout, size)), 1.5 * fit->relative_error,
            Provenance::interpolated};
  // NCCL's own model used this way misses by 14 to 29 % on one node; across nodes the bracket is wider.
  return {Seconds(prior_seconds(hardware, collective, layout, size)), layout.nodes > 1 ? 0.3 : 0.2,
          Provenance::assumed};
}

CostEstimate message_cost(const HardwareSpec& hardware, bool same_node, Bytes bytes) {
  const GroupLayout pair{2, same_node ? 2 : 1, same_node ? 1 : 2, 1};
  return collective_cost(hardware, Collective::send_receive, pair, bytes);
}

}  // namespace reckon
