// Which slice of every weight one rank holds, and where it lies in the rank's flat parameter buffer. Gradients, master
// weights and optimizer states use the same offsets; ZeRO shards are equal slices of the flat buffer.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/parameters.h"
#include "plan/plan.h"
#include "plan/rank_grid.h"

namespace reckon {

struct LocalParameter {
  Parameter whole;
  std::vector<std::int64_t> local_shape;  // this rank's slice; vocabulary tables are padded to a multiple of tensor
  std::int64_t first = 0;                 // start of the slice along the split dimension of the (padded) whole tensor
  std::int64_t offset = 0;                // elements from the start of the flat buffer
  std::int64_t layer = -1;                // model layer; -1 embedding, -2 final norm and head

  std::int64_t elements() const;
};

struct ParameterLayout {
  std::vector<LocalParameter> parameters;  // model order of this rank's virtual stages
  std::int64_t elements = 0;               // sum, without padding
  std::int64_t padded_elements = 0;        // rounded up so that every ZeRO shard is equal
  std::int64_t shard_elements = 0;         // padded_elements / shards
  std::int64_t shards = 1;                 // ranks of the zero group; 1 without ZeRO
};

/// Layout of the rank at `coordinates`. The tied table lies on the first and on the last stage.
ParameterLayout parameter_layout(const Plan& plan, const Coordinates& coordinates);

}  // namespace reckon
