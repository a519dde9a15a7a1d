// The fields of StageMemory by name, in the order of reports and of the profile.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "plan/step_profile.h"

namespace reckon {

enum class MemoryFieldKind : std::uint8_t {
  allocated,  // part of the allocated peak
  beyond,     // of the device, beside it
  sum,        // of those before it
};

struct MemoryField {
  const char* name;
  Bytes StageMemory::*bytes;
  MemoryFieldKind kind;

  /// "allocator slack"
  std::string words() const {
    std::string text = name;
    for (char& letter : text)
      if (letter == '_') letter = ' ';
    return text;
  }
};

inline constexpr std::array<MemoryField, 11> kMemoryFields = {
    {{"parameters", &StageMemory::parameters, MemoryFieldKind::allocated},
     {"gradients", &StageMemory::gradients, MemoryFieldKind::allocated},
     {"optimizer", &StageMemory::optimizer, MemoryFieldKind::allocated},
     {"activations", &StageMemory::activations, MemoryFieldKind::allocated},
     {"transient", &StageMemory::transient, MemoryFieldKind::allocated},
     {"communication", &StageMemory::communication, MemoryFieldKind::allocated},
     {"peak_allocated", &StageMemory::peak_allocated, MemoryFieldKind::sum},
     {"allocator_slack", &StageMemory::allocator_slack, MemoryFieldKind::beyond},
     {"communicators", &StageMemory::communicators, MemoryFieldKind::beyond},
     {"context", &StageMemory::context, MemoryFieldKind::beyond},
     {"device_used", &StageMemory::device_used, MemoryFieldKind::sum}}};

}  // namespace reckon
