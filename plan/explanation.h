// What `reckon explain` finds: where a size comes from, what binds a plan, why one plan is slower than another.
// Filled by cost_model and cli, printed by report (schema "reckon.explanation/1").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/changed_keys.h"
#include "plan/out_of_memory_line.h"
#include "plan/step_profile.h"
#include "plan/units.h"

namespace reckon {

/// Something of a plan that is allocated in one piece.
struct SizedTensor {
  std::string name;   // "logits", "model.layers.*.mlp.gate_proj.weight"
  std::string where;  // "head, one micro-batch", "parameters of stage 0"
  std::string form;   // "bf16", "FP32 copy", "gradient"
  Bytes bytes;
  bool whole = false;  // as it would be without tensor, context or expert parallelism and without shards
};

struct SizeMatch {
  SizedTensor tensor;
  bool rounded = false;  // only after the caching allocator's rounding to whole segments
  double error = 0;      // (tensor - asked) / asked; 0 within the printed digits
};

struct SizeExplanation {
  OutOfMemoryLine line;
  std::vector<SizeMatch> matches;  // best first
  std::vector<std::string> remarks;
};

/// One change of a plan, judged by the closed form.
struct PlanChange {
  std::vector<std::string> overrides;
  bool fits = false;
  Seconds step;
  Bytes need;
};

struct TimeSaving {
  std::string component;
  Seconds saved;
};

struct PlanExplanation {
  StepProfile profile;
  std::string bound_by;
  std::vector<TimeSaving> savings;     // if the component were free, by simulation; largest first
  std::vector<PlanChange> changes;     // that fit: for a plan that does not, all of them; else the faster ones
  std::optional<PlanChange> smallest;  // on the fewest devices
  std::int64_t smallest_devices = 0;
  std::int64_t devices_tried = 0;  // largest number that was looked at, when none fits
};

struct DifferenceRow {
  std::string component;
  Seconds first, second;  // exposed
};

struct DifferenceExplanation {
  std::string first_name, second_name;
  StepProfile first, second;
  double scale = 1;                 // on the second plan's times, where its step has another number of tokens
  std::vector<DifferenceRow> rows;  // largest difference first; their differences sum to that of the steps
  std::vector<ChangedKey> keys;     // in which the plans differ
};

}  // namespace reckon
