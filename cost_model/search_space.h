// What a search goes through: every way to spread a plan's model and batch over a number of devices. The space is the
// product of: tensor, ulysses, ring, pipeline and data degrees that multiply to the devices; expert degrees;
// micro-batch sizes that divide the replica's rows; ZeRO 0-3; GPipe, 1F1B and interleaved schedules; storage of
// activations as computed or as AGoQ stores them at 8, 6 and 4 bits; recompute modes. Layers that a mode recomputes are
// not a dimension: the fewest that fit are never slower than more. Sequence parallelism is on wherever tensor
// parallelism is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/plan.h"

namespace reckon {

struct Degrees {
  std::int64_t tensor = 1, ulysses = 1, ring = 1, expert = 1, pipeline = 1, data = 1;

  bool operator==(const Degrees&) const = default;
};

/// How activations are stored: an empty format means as computed.
struct StorageChoice {
  std::optional<NumberFormat> format;

  bool operator==(const StorageChoice&) const = default;
};
const std::vector<StorageChoice>& storage_choices();
void apply_storage(const StorageChoice& choice, ActivationSpec& activations);

struct Candidate {
  Degrees degrees;
  std::int64_t micro_batch = 1;
  int zero = 0;
  ScheduleKind schedule = ScheduleKind::one_forward_one_backward;
  std::int64_t chunks = 1;
  std::size_t storage = 0;  // index into storage_choices()
  Recompute recompute = Recompute::none;

  bool operator==(const Candidate&) const = default;
};

/// The plan that a candidate stands for, not resolved.
Plan plan_of(const Plan& base, const Candidate& candidate);

/// The candidate as plan keys and values, in the order of the plan file.
std::vector<std::pair<std::string, std::string>> overrides_of(const Plan& base, const Candidate& candidate);
std::string text_of(const std::vector<std::pair<std::string, std::string>>& overrides);

std::vector<std::int64_t> divisors(std::int64_t number);

/// The first rule of check_plan that the degrees break, in a few words; nothing if they are legal.
std::optional<std::string> broken_rule(const Plan& base, const Degrees& degrees);

/// Degrees without pipeline and data (both 1) in the order in which they are searched.
std::vector<Degrees> inner_degrees(const Plan& base, std::int64_t devices);

/// Numbers of virtual stages a rank that interleaving may use: those that split the layers evenly, else powers of two.
std::vector<std::int64_t> chunk_choices(std::int64_t layers, std::int64_t pipeline);

}  // namespace reckon
