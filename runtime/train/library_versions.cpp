#include "runtime/train/library_versions.h"

#include <torch/headeronly/version.h>

namespace reckon {

std::string libtorch_version() {
  return TORCH_VERSION;
}

}  // namespace reckon
