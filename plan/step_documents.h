// The documents of a plan's steps: what is packed into which row, and what attention costs because of it. Cost model,
// simulator and runtime take their rows from here.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/document_lengths.h"
#include "plan/layer_ops.h"
#include "plan/pack_documents.h"
#include "plan/plan.h"
#include "plan/ring_traffic.h"
#include "plan/step_profile.h"
#include "plan/token_placement.h"

namespace reckon {

/// Packs one step after the other. Two packers of equal plans give equal rows.
class StepPacker {
 public:
  /// Throws ConfigError for an unknown documents.source.
  explicit StepPacker(const Plan& plan);

  /// Rows of the next step, dealt to replicas and then to their micro-batches of batch.micro_batch rows so that
  /// attention work is as even as the rows allow. [replica * micro_batches + micro_batch][row]
  std::vector<std::vector<PackedRow>> next();

 private:
  DocumentSpec documents_;
  std::int64_t row_tokens_ = 0, rows_ = 0, replicas_ = 0, micro_batches_ = 0;
  LengthSource source_;
  std::vector<Piece> waiting_;  // drawn, but not packed yet
  std::uint64_t next_document_ = 0;
};

/// Seconds of a (query, key) pair and of a key and value moved, forward and backward, from shapes, peak and the slowest
/// link of a ring: what `balanced` weighs. The defaults of PlacementCosts where the hardware names no peak.
PlacementCosts placement_costs(const Plan& plan);

/// The steps whose rows a plan is predicted for: those that a run takes its times from, after train.warmup (the last
/// one where there are no more), but no more of them than hold kPricedRows rows. At least one.
struct PricedSteps {
  std::int64_t first = 0, count = 1;
  bool is_sample = false;  // a run times more than these
};
inline constexpr std::int64_t kPricedRows = 512;
PricedSteps priced_steps(const Plan& plan);

/// What `plan`'s documents make of attention in its priced steps.
struct DocumentWork {
  AttentionWork attention;     // of one row: pairs of the median step; imbalance, and key blocks of the ring's busiest
                               // rank, of the mean row
  std::vector<RingLoad> ring;  // what each ring rank of each replica sends; empty without a ring
  double useful_tokens = 0;    // that are no padding, of a step, on average
  PackingSummary packing;      // of a step, on average; placement is the one chosen most often
  double replica_imbalance = 1.0;      // pairs of the heaviest replica in a step / mean
  double micro_batch_imbalance = 1.0;  // pairs of the heaviest micro-batch in a step / mean
};

/// Packs the priced steps as a run does, and places their rows; where one step holds more than kPricedRows, about that
/// many of them, evenly picked.
DocumentWork document_work(const Plan& plan);

/// `attention` of the replica with the most pairs, for which the others wait.
AttentionWork slowest_attention(const DocumentWork& work);

/// document_work of packed documents; closed forms where every row is one document.
DocumentWork planned_documents(const Plan& plan);
/// What prediction and simulation price attention with: that of the slowest replica.
AttentionWork planned_attention_work(const Plan& plan);

}  // namespace reckon
