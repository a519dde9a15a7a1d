// What a cluster is made of: devices, links, and the measured or assumed constants of the time model.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/collective.h"
#include "plan/number_format.h"
#include "plan/units.h"

namespace reckon {

/// Where a number comes from; printed with every prediction.
enum class Provenance { datasheet, calibrated, interpolated, assumed };

struct DeviceSpec {
  std::string name;
  std::string vendor;
  std::map<NumberFormat, FlopsPerSecond> peak;  // dense; absent = the device cannot compute in it
  Bytes memory;                                 // what the runtime can see, before the context
  BytesPerSecond memory_bandwidth;
  int multiprocessors = 0;
  bool is_cpu = false;
};

/// One tier of links. Bandwidth is per device and direction, as wire rate.
struct LinkSpec {
  BytesPerSecond bandwidth;
  Seconds latency;
  bool switched = true;  // false: PCIe-like, shared by all devices of the node
};

/// seconds = flops_factor * FLOPs / peak + bytes_factor * bytes / bandwidth + constant  (hardware page, three-term fit)
struct OpFit {
  double flops_factor = 1.3;
  double bytes_factor = 1.0;
  Seconds constant{0.0};
  double relative_error = 0.15;  // one standard deviation of held-out residuals
  Provenance provenance = Provenance::assumed;
};

/// seconds = alpha + gamma * sqrt(bytes) + bytes / bandwidth, bytes as nccl-tests counts them (whole tensor).
struct CollectiveFit {
  Collective collective = Collective::all_reduce;
  int ranks_per_node = 1;
  int nodes = 1;
  int siblings = 1;  // groups that share the node's network ports at the same time
  Seconds alpha;
  double gamma_seconds_per_sqrt_byte = 0.0;
  BytesPerSecond bandwidth;
  double relative_error = 0.15;
  Provenance provenance = Provenance::assumed;
};

enum class Pass { forward, input_gradient, weight_gradient };

/// An exactly measured matrix product, [m,k] x [k,n], `batch` of them.
struct GemmSample {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  Pass pass = Pass::forward;
  NumberFormat format = NumberFormat::bf16;
  Seconds seconds;
};

/// An exactly measured op of the op list, keyed by its name and element count (calibrate, measured runs).
struct OpSample {
  std::string op;     // name in layer_ops
  std::string shape;  // canonical text of its shape, see layer_ops
  Seconds forward, backward;
  NumberFormat format = NumberFormat::bf16;  // the plan's compute format
};

/// Constants of the time model. Every field has a documented default that says "assumed".
struct TimeConstants {
  std::map<Pass, OpFit> gemm;
  OpFit attention_forward{1.6, 1.0, Seconds(20e-6), 0.1, Provenance::assumed};
  OpFit attention_backward{2.0, 1.0, Seconds(30e-6), 0.1, Provenance::assumed};
  OpFit memory_bound{0.0, 1.25, Seconds(5e-6), 0.1, Provenance::assumed};
  OpFit optimizer{0.0, 1.2, Seconds(20e-6), 0.1, Provenance::assumed};
  Seconds launch{5e-6};  // host time of one op's launch, with what the framework does around it
  /// Host stall of each ring step of a stage's collectives while pipeline messages cross nodes; 0 on sound clusters.
  Seconds pipeline_interference{0.0};
  double overlap_compute_slowdown = 1.15;  // compute while a collective runs
  double overlap_communication_slowdown = 1.1;
  double global_factor = 1.0;  // one correction after a measured run, shown wherever it acts
  std::vector<GemmSample> gemm_samples;
  std::vector<OpSample> op_samples;
  std::vector<CollectiveFit> collectives;
};

struct HardwareSpec {
  std::string name;
  std::vector<std::string> aliases;
  std::string source;  // where the figures come from
  DeviceSpec device;
  int devices_per_node = 8;
  LinkSpec intra_node;
  LinkSpec inter_node;    // bandwidth per device
  Bytes context{0};       // driver context and libraries of one process
  Bytes communicator{0};  // buffers of one used communicator
  int cores = 0;          // CPU hardware: cores that the ranks of one node share
  TimeConstants time;
  std::map<std::string, std::string> provenance;  // host, kernel, library versions, date ...
};

}  // namespace reckon
