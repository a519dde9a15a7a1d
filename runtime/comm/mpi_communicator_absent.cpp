#include "plan/errors.h"
#include "runtime/comm/mpi_communicator.h"

namespace reckon {

bool mpi_is_built_in() {
  return false;
}

void run_rank_over_mpi(int, const CommunicatorOptions&, const std::function<void(Communicator& world)>&) {
  throw RunError("this build has no MPI; configure with the preset cpu (RECKON_MPI=ON), or use the threads backend");
}

}  // namespace reckon
