// A size as a person has it: "512.00 MiB", or the whole line of an out-of-memory error.
#pragma once

#include <optional>
#include <string_view>

#include "plan/units.h"

namespace reckon {

struct OutOfMemoryLine {
  Bytes asked;
  Bytes tolerance;                                         // half of the last printed digit
  std::optional<Bytes> capacity, free, allocated, cached;  // cached: reserved by the allocator and not allocated
};

/// PyTorch's messages of several versions ("Tried to allocate 3.74 GiB. GPU 0 has a total capacity of ..."), those of
/// reckon, or a bare size. Throws ConfigError when no size stands in the text.
OutOfMemoryLine read_out_of_memory_line(std::string_view text);

}  // namespace reckon
