#include "plan/errors.h"
#include "runtime/comm/nccl_communicator.h"

namespace reckon {

bool nccl_is_built_in() {
  return false;
}

int nccl_devices(std::string& reason) {
  reason = "this build has no NCCL; the preset gpu (./bootstrap build --preset gpu) brings it";
  return 0;
}

void run_rank_over_nccl(int, const CommunicatorOptions&, const std::function<void(Communicator& world)>&) {
  std::string reason;
  nccl_devices(reason);
  throw RunError(reason);
}

}  // namespace reckon
