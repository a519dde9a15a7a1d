// Seconds of the passes that store kept tensors in fewer bits and widen them again.
#pragma once

#include <map>
#include <set>

#include "plan/kept_tensors.h"
#include "plan/layer_ops.h"
#include "plan/number_format.h"
#include "plan/plan.h"
#include "plan/units.h"

namespace reckon {

struct StorageTimes {
  Seconds quantize, dequantize;
};

/// Per byte that narrowing reads and writes. A format is widened for every op whose backward reads it, so that the
/// two differ.
struct StorageRates {
  StorageTimes unmeasured;  // of formats that `measured` does not have
  std::map<NumberFormat, StorageTimes> measured;

  StorageRates& operator*=(double factor);
};

/// Of what one section keeps.
StorageTimes storage_times(const OpList& list, const KeptSet& kept, const StorageRates& rates);

/// What a micro-batch stores in fewer bits on its way through the first stage's policy in all layers and tables.
struct StorageUse {
  Bytes bytes;  // read and written, once
  std::set<NumberFormat> formats;
};
StorageUse storage_use(const Plan& plan);

}  // namespace reckon
