#include "plan/memory_category.h"

#include <stdexcept>

namespace reckon {

std::string_view name_of(MemoryCategory category) {
  switch (category) {
    case MemoryCategory::parameters: return "parameters";
    case MemoryCategory::gradients: return "gradients";
    case MemoryCategory::optimizer: return "optimizer";
    case MemoryCategory::activations: return "activations";
    case MemoryCategory::transient: return "transient";
    case MemoryCategory::communication: return "communication";
  }
  throw std::logic_error("unknown memory category");
}

}  // namespace reckon
