// Tells whether the machine was undisturbed while something was measured: what others took of it (/proc/stat, with what
// a hypervisor stole), and how long a reference product took beside the fastest so far.
#pragma once

#include <ATen/core/Tensor.h>

#include "plan/calibration_samples.h"
#include "runtime/comm/communicator.h"

namespace reckon {

class MachineWatch {
 public:
  /// Shares above which a visit counts as noisy.
  static constexpr double kMostOthers = 0.05;      // of the machine
  static constexpr double kSlowestProduct = 1.07;  // over the fastest

  /// `world` outlives it. The reference product runs on the first `computing` ranks, as everything that is measured.
  MachineWatch(Communicator& world, int computing);

  /// All ranks call both together; between them is the visit. True if it was noisy, the same on all ranks.
  void begin();
  bool end();

  /// The visit that has ended counts, although it was noisy or because it was not.
  void keep(bool noisy);
  void repeat() { ++quietness_.repeated; }
  const Quietness& quietness() const { return quietness_; }

 private:
  struct Reading {
    double busy = 0, own = 0, wall = 0;  // seconds; busy of all cores
  };
  Reading read() const;
  double reference_seconds();

  Communicator& world_;
  bool computes_, counts_process_;
  at::Tensor a_, b_, c_;
  Reading before_;
  double fastest_, slowest_of_visit_ = 0, others_of_visit_ = 0;
  Quietness quietness_;
};

}  // namespace reckon
