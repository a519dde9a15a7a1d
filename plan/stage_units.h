// The units (parameter_layout.h) of one pipeline rank by size, without placing parameters; and what the sections of a
// plan hold whole while they run.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/parameter_layout.h"
#include "plan/plan.h"

namespace reckon {

/// Equal units of one flat buffer.
struct EqualUnits {
  std::int64_t elements = 0, count = 1;
  bool borrowed = false;  // read by a section that does not hold it (read_units)
};

/// Sections of one rank by kind.
struct SectionCounts {
  std::int64_t embedding = 0, dense = 0, moe = 0, head = 0;

  bool operator==(const SectionCounts&) const = default;
};
SectionCounts section_counts(const Plan& plan, std::int64_t stage);

/// Of the weights of a rank that runs so many sections, but for routed experts that expert parallelism spreads.
/// `elements` are the section_elements of the plan's degrees.
std::vector<EqualUnits> rank_units(const Plan& plan, const SectionElements& elements, const SectionCounts& counts);
/// Of those experts; empty without expert parallelism.
std::vector<EqualUnits> rank_expert_units(const Plan& plan, const SectionElements& elements,
                                          const SectionCounts& counts);
/// The same for a rank of pipeline stage `stage`.
std::vector<EqualUnits> stage_units(const Plan& plan, std::int64_t stage);
std::vector<EqualUnits> stage_expert_units(const Plan& plan, std::int64_t stage);

/// What lives for a section besides the rank's buffers. All 0 where those are whole.
struct SectionBytes {
  Bytes gathered;       // ZeRO-3: its weights, while it runs and while the section before it runs
  Bytes gradient;       // of its weights, in FP32, while its backward runs
  Bytes being_reduced;  // what is left of `gradient` while the next section's backward runs
};
/// By Section.
std::array<SectionBytes, 4> section_bytes(const Plan& plan);
std::array<SectionBytes, 4> section_bytes(const Plan& plan, const SectionElements& elements);

}  // namespace reckon
