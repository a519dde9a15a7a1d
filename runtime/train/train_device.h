// Where a rank computes: the one value that tells its tensors' place.
#pragma once

namespace reckon {

struct TrainDevice {
  enum class Kind { cpu, cuda };
  Kind kind = Kind::cpu;
  int index = 0;  // of the host's devices; cuda only

  bool is_cpu() const { return kind == Kind::cpu; }
};

}  // namespace reckon
